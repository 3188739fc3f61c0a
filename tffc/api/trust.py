"""Signing bundles, approving their clients' part, and admitting them: `tffc.trust`."""

from __future__ import annotations

import datetime
import os
import pathlib

from tffc.api import rebuilding
from tffc.api.boundary import public
from tffc.api.opened_bundles import name_of
from tffc.assurance.trust import signing
from tffc.assurance.trust.admission import Admission, admission_of
from tffc.assurance.trust.settings import AdmissionSettings, read_settings
from tffc.backends.bundle.bundle import Bundle, file_digests, read_bundle

sign = public(signing.sign)
verify_signature = public(signing.verify_signature)
approve = public(signing.approve)
rebuild = public(rebuilding.rebuild)


@public
def admit(
    bundle: str | os.PathLike[str] | Bundle,
    settings: str | os.PathLike[str] | AdmissionSettings,
    *,
    as_of: datetime.date | None = None,
) -> Admission:
    """Return the verdicts of a node on a bundle; `settings` is the file with its demands.

    Raises:
      TrustError: the file, a key or the log cannot be used.
      TffcError: the bundle or the policy cannot be read.
    """
    if not isinstance(settings, AdmissionSettings):
        settings = read_settings(pathlib.Path(settings))
    if isinstance(bundle, Bundle):
        return admission_of(bundle, settings, name_of(bundle), today=as_of)
    return admission_of_folder(pathlib.Path(bundle), settings, as_of)


def admission_of_folder(
    folder: pathlib.Path, settings: AdmissionSettings, today: datetime.date | None = None
) -> Admission:
    """Return the verdicts on the bundle in a folder, all of whose files must be signed.

    Raises:
      TffcError: as `admit` does.
    """
    bundle = read_bundle(folder)
    return admission_of(bundle, settings, str(folder), files=file_digests(folder), today=today)
