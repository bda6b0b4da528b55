"""Takes single files out of an archive, or looks whether they are there already.

    unpack.py verify FOLDER            exit 0 if every file is in FOLDER with its digest
    unpack.py unpack FOLDER DOWNLOAD   takes them out of the one archive in DOWNLOAD

Standard input has a line for each file: length, SHA-256, member of the archive, name below FOLDER; tabs between.
Nothing of the archive is imported or run. A file appears under its name only when its digest is right.
"""

import hashlib
import os
import shutil
import sys
import tarfile
import zipfile


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_right(path, length, sha256):
    return os.path.isfile(path) and os.path.getsize(path) == length and digest_of(path) == sha256


def opener_of(download):
    """A function from the name of a member to a readable stream."""
    names = os.listdir(download)
    if len(names) != 1:
        sys.exit(f"wanted one archive, found {names}")
    archive = os.path.join(download, names[0])
    if zipfile.is_zipfile(archive):
        return zipfile.ZipFile(archive).open
    return tarfile.open(archive).extractfile


def main():
    mode, folder = sys.argv[1], sys.argv[2]
    wanted = [line.rstrip("\n").split("\t") for line in sys.stdin]
    if mode == "verify":
        right = all(is_right(os.path.join(folder, name), int(length), sha256) for length, sha256, _, name in wanted)
        sys.exit(0 if right else 1)
    open_member = opener_of(sys.argv[3])
    for length, sha256, member, name in wanted:
        final = os.path.join(folder, name)
        os.makedirs(os.path.dirname(final), exist_ok=True)
        part = final + ".part"
        with open_member(member) as source, open(part, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        if not is_right(part, int(length), sha256):
            os.remove(part)
            sys.exit(f"{member} is not the file it was: wanted {length} bytes with SHA-256 {sha256}")
        os.replace(part, final)


main()
