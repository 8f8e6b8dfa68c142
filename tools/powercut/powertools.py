"""File systems that last as long as they are needed."""

import contextlib
import os
import subprocess


def call(*command):
    """Runs a command that must not fail."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise OSError(f"`{' '.join(command)}`: {done.stdout.strip()}")


def make(filesystem, device):
    """Makes a file system on a device or in a file."""
    call(f"mkfs.{filesystem}", "-q", "-F" if filesystem == "ext4" else "-f", device)


@contextlib.contextmanager
def mounted(filesystem, image, folder, *options):
    """The folder in which the image is mounted."""
    call("mount", "-t", filesystem, "-o", ",".join(options), image, folder)
    try:
        yield folder
    finally:
        call("umount", folder)


@contextlib.contextmanager
def fresh(filesystem, size, place):
    """The folder of a new file system of so many bytes."""
    folder = os.path.join(place, "disk")
    os.mkdir(folder)
    if filesystem == "tmpfs":
        image, option = "tmpfs", f"size={size}"
    else:
        image, option = os.path.join(place, "image"), "loop"
        call("truncate", "--size", str(size), image)
        make(filesystem, image)
    with mounted(filesystem, image, folder, option):
        yield folder
