"""Builds the site from the pages as they are on GitHub.

A file of the site has the path that it has in the repository, so links between pages, errors,
examples and code lead where they lead there.  Pages stand elsewhere only in their addresses:
`docs/running.md` is `running.html`, `tffc/support/explanations/E101.md` is `errors/E101.html`.
What pages link to outside of these, such as an example, becomes a page that shows it.

The reference of the API is written from `tffc/__init__.pyi` and the docstrings, which are read and
not imported.  The help of commands and the list of error codes come from `tffc` itself.
"""

from __future__ import annotations

import html
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator

from anchors import FENCED, links, slug
from api import api_pages
from explorers import MARK, explored
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from notebooks import markdown as notebook_markdown
from notebooks import with_outputs
from references import REFERENCES

ROOT = pathlib.Path(__file__).parents[1]
PLACES = {
    "README.md": "index.html",
    "CHANGELOG.md": "changelog.html",
    "CONTRIBUTING.md": "contributing.html",
    "SECURITY.md": "reporting.html",
}
"""Where pages at the root of the repository are on the site."""

LANGUAGES = {".py": "python", ".sh": "bash", ".json": "json", ".yaml": "yaml", ".svg": "xml"}

FILE_MARK = re.compile(r"^<!-- file: (?P<name>\S+) -->\n```(?P<kind>\w+)$", re.MULTILINE)
NOTATION = re.compile(
    r"^```text\n(?P<content>(?=.*?(?:comp#[0-9a-f]{8}|\(let$|\w+ -> \w+|federated_\w+\())"
    r"(?!.*?(?:error\[|━|╭)).*?^```$)",
    re.DOTALL | re.MULTILINE,
)
"""What a command printed, if it looks like programs in the notation."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that they have on GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


class ShownFile(File):
    """A file or a folder of the repository that is shown on a page of its own."""

    def is_documentation_page(self) -> bool:
        """Return that it becomes a page, whatever its name."""
        return True

    @property
    def content_string(self) -> str:
        """The page, in Markdown."""
        path = ROOT / self.src_uri
        title = f"# {self.src_uri}\n\n"
        if path.is_dir():
            names = sorted(each.name for each in path.iterdir())
            return title + "\n".join(f"- `{name}`" for name in names if name[0] not in "_.") + "\n"
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            return text
        fence = "`" * 8
        return f"{title}{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text}{fence}\n"

    @content_string.setter
    def content_string(self, value: str) -> None:
        raise AttributeError("the repository has the content")


class NotebookFile(ShownFile):
    """A notebook that is shown with its outputs."""

    @property
    def content_string(self) -> str:
        """The notebook as a page."""
        return notebook_markdown(ROOT / self.src_uri)

    @content_string.setter
    def content_string(self, value: str) -> None:
        raise AttributeError("the repository has the content")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Give the files the paths that they have in the repository, and add what they link to."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
            for each in _files_of(file, config):
                files.append(each)
    for path, place in PLACES.items():
        files.append(_file(path, place, config))
    for path in sorted((ROOT / "tffc" / "support" / "explanations").glob("*.md")):
        uri = path.relative_to(ROOT).as_posix()
        files.append(_file(uri, f"errors/{path.stem}.html", config, InclusionLevel.NOT_IN_NAV))
    for name, text in api_pages(ROOT).items():
        page = File.generated(config, f"docs/api/{name}.md", content=text)
        page.dest_uri = f"api/{name}.html"
        files.append(page)
    pages = [file for file in files if file.src_uri.endswith(".md") and file.abs_src_path]
    for page in pages:
        for number, (_, text) in enumerate(explored(page.content_string, ROOT), 1):
            files.append(File.generated(config, _explorer(page, number), content=text))
    for path in sorted(_linked(pages)):
        if files.get_file_from_path(path) is None:
            inclusion = InclusionLevel.NOT_IN_NAV
            files.append(_file(path, f"source/{path}.html", config, inclusion, ShownFile))
    return files


def _file(
    path: str,
    place: str,
    config: MkDocsConfig,
    inclusion: InclusionLevel = InclusionLevel.UNDEFINED,
    kind: type[File] = File,
) -> File:
    root, site = str(ROOT), config.site_dir
    return kind(path, root, site, use_directory_urls=False, dest_uri=place, inclusion=inclusion)


def _files_of(file: File, config: MkDocsConfig) -> Iterator[File]:
    """Yield what the site has of a file of the documentation: notebooks as pages too."""
    path, place = f"docs/{file.src_uri}", file.dest_uri
    if not path.endswith(".ipynb"):
        yield _file(path, place, config)
        return
    page = place.removesuffix(".ipynb") + ".html"
    yield _file(path, page, config, kind=NotebookFile)
    content = (ROOT / path).read_text(encoding="utf-8")
    download = File.generated(config, f"{path}.download", content=content)
    download.dest_uri = place
    yield download


def _explorer(page: File, number: int) -> str:
    """Return the path of the n-th page of a round in a page."""
    return f"explorer/{page.dest_uri.removesuffix('.html')}-{number}.html"


def _linked(pages: Iterable[File]) -> set[str]:
    """Return the paths in the repository to which pages link."""
    found: set[str] = set()
    for page in pages:
        for link in links(page.content_string):
            target = (ROOT / page.src_uri).parent / link.partition("#")[0]
            if "://" not in link and target.exists():
                found.add(target.resolve().relative_to(ROOT).as_posix())
    return found


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Put what cells have shown into the pages of notebooks."""
    file = page.file
    return with_outputs(html, ROOT / file.src_uri) if isinstance(file, NotebookFile) else html


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Colour programs in the notation, put the names of files over their blocks, show rounds, and
    add references to the pages about commands and errors."""
    if page.file.src_uri in REFERENCES:
        markdown = f"{markdown}\n{REFERENCES[page.file.src_uri]()}"
    numbers = itertools.count(1)

    def frame(match: re.Match[str]) -> str:
        up = "../" * page.file.dest_uri.count("/")
        address = f"{up}{_explorer(page.file, next(numbers))}"
        title = f"The round of {html.escape(match['target'])}"
        return (
            f'<iframe class="explorer" src="{address}" title="{title}" loading="lazy"></iframe>\n'
            f'<p><a href="{address}" target="_blank">{title} on a page of its own</a></p>\n'
        )

    markdown = MARK.sub(frame, markdown)
    markdown = FENCED.sub(lambda match: NOTATION.sub(r"```tffc\n\g<content>", match[0]), markdown)
    return FILE_MARK.sub(r'```\g<kind> title="\g<name>"', markdown)
