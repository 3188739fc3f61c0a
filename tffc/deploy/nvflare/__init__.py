"""A federation of NVIDIA FLARE as one of `tffc.deploy.federation`, and the jobs that run on it.

    controller   the server's side of a job, and the federation reached through its tasks
    executor     a site's side
    sites        the configurations of the server and of a site
    packed       our messages as bytes
    job_folder   the folder of a job, as `tffc export --to nvflare` writes it

Only controller and executor import nvflare, which loads them by the names in the job.  The job has
no code of its own.
"""
