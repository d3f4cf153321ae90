"""Writes a release's software bill of materials as SPDX 2.3 (JSON): mdot's files, and the libraries that they contain
or load.

    sbom.py --version 0.3.0 --commit HASH --date 2026-11-24T00:00:00Z --out FILE FILE…

FILE… are the release files. C libraries have the versions of the Debian packages on the build machine.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from license_expression import get_spdx_licensing
from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    Package,
    PackagePurpose,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.json.json_writer import write_document_to_file

# Debian package, licence (SPDX), relation to mdot. A pattern stands for the newest installed package that it matches.
LIBRARIES = [
    ("llvm-[0-9]*-dev", "Apache-2.0 WITH LLVM-exception", "dynamic link; the wheel mdot-compiler contains it"),
    ("libprotobuf-c-dev", "BSD-2-Clause", "dynamic link; the wheel mdot-predict contains it"),
    ("libsqlite3-dev", "blessing", "dynamic link of the store; the wheel mdot-store contains it"),
    ("coinor-libclp-dev", "EPL-1.0", "dynamic link of the simulator"),
    ("coinor-libcbc-dev", "EPL-1.0", "dynamic link of the simulator"),
    ("libjson-c-dev", "MIT", "dynamic link; the wheel mdot-predict contains it"),
    ("zlib1g-dev", "Zlib", "dynamic link"),
    ("libslurm-dev", "GPL-2.0-or-later", "headers of the plugins"),
    ("libcmocka-dev", "Apache-2.0", "tests"),
]


def find_package(pattern: str) -> tuple[str, str] | None:
    """Name and version of the newest installed package that matches a pattern; None without a match."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", pattern], capture_output=True, text=True, check=False
    )
    found = [(name, version) for state, name, version in map(str.split, listed.stdout.splitlines()) if state == "installed"]
    return max(found, key=lambda package: [int(digits) for digits in re.findall(r"\d+", package[0])], default=None)


def sha256(path: Path) -> Checksum:
    return Checksum(ChecksumAlgorithm.SHA256, hashlib.sha256(path.read_bytes()).hexdigest())


def document(version: str, commit: str, date: datetime, files: list[Path]) -> Document:
    licences = get_spdx_licensing()
    author = Actor(ActorType.ORGANIZATION, "mdot's authors")
    source = Package(
        spdx_id="SPDXRef-mdot",
        name="mdot",
        download_location=SpdxNoAssertion(),
        version=version,
        supplier=author,
        files_analyzed=False,
        license_concluded=licences.parse("Apache-2.0"),
        license_declared=licences.parse("Apache-2.0"),
        source_info=f"git commit {commit}",
        primary_package_purpose=PackagePurpose.SOURCE,
    )
    packages = [source]
    relations = [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, source.spdx_id)]
    for number, path in enumerate(files):
        package = Package(
            spdx_id=f"SPDXRef-file-{number}",
            name=path.name,
            download_location=SpdxNoAssertion(),
            version=version,
            file_name=path.name,
            supplier=author,
            files_analyzed=False,
            checksums=[sha256(path)],
            license_concluded=licences.parse("Apache-2.0"),
            primary_package_purpose=PackagePurpose.ARCHIVE,
        )
        packages.append(package)
        relations.append(Relationship(package.spdx_id, RelationshipType.GENERATED_FROM, source.spdx_id))
    for pattern, licence, use in LIBRARIES:
        package_found = find_package(pattern)
        if package_found is None:
            print(f"sbom.py: no package {pattern} is installed, and the document leaves it out", file=sys.stderr)
            continue
        name, found = package_found
        package = Package(
            spdx_id=f"SPDXRef-{name}",
            name=name,
            download_location=SpdxNoAssertion(),
            version=found,
            files_analyzed=False,
            license_declared=licences.parse(licence),
            comment=use,
            primary_package_purpose=PackagePurpose.LIBRARY,
        )
        packages.append(package)
        kind = RelationshipType.TEST_DEPENDENCY_OF if use == "tests" else RelationshipType.BUILD_DEPENDENCY_OF
        relations.append(Relationship(package.spdx_id, kind, source.spdx_id))
    made = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id="SPDXRef-DOCUMENT",
        name=f"mdot-{version}",
        document_namespace=f"https://spdx.org/spdxdocs/mdot-{version}-{commit}",
        creators=[author],
        created=date,
    )
    return Document(made, packages=packages, relationships=relations)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--date", required=True, help="UTC, as 2026-11-24T00:00:00Z; the commit's, so that a release repeats")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    parsed = parser.parse_args()
    made = document(parsed.version, parsed.commit, datetime.strptime(parsed.date, "%Y-%m-%dT%H:%M:%SZ"), parsed.files)
    faults = validate_full_spdx_document(made)
    for fault in faults:
        print(f"sbom.py: {fault.validation_message}", file=sys.stderr)
    if faults:
        return 1
    write_document_to_file(made, str(parsed.out), validate=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
