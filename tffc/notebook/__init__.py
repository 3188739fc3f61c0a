"""What `%load_ext tffc` does in a notebook: quiet TensorFlow, TFF's name, progress, `%%tffc`.

Objects show themselves as HTML without it: each class has a method `_repr_html_`.
"""
