"""What can be reached from here. One line a check: its name, and O for open or - for closed."""
import ctypes, os, signal, socket, struct, sys

outside, work, tcp, udp, host_pid, abstract = sys.argv[1:7]
only = sys.argv[7:]
tcp, udp, host_pid = int(tcp), int(udp), int(host_pid)
libc = ctypes.CDLL(None, use_errno=True)
secret, hole = outside + "/secret", outside + "/hole"


def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def in_a_child(work):
    """For what may end the process, or changes it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError("it failed in a child")


def write(path):
    with open(path, "w") as file:
        file.write("x")


def by_link(name, target):
    link = work + "/" + name
    os.symlink(target, link)
    try:
        open(link).read()
    finally:
        os.unlink(link)


def connect(family, kind, address, protocol=0):
    with socket.socket(family, kind, protocol) as one:
        one.settimeout(2)
        one.connect(address)


def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(1)
        one.sendto(b"x", ("127.0.0.1", udp))
        one.recv(1)


def descriptors():
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.isdir("/proc/self/fd/" + name) and "/proc/" not in os.readlink("/proc/self/fd/" + name):
            return
    raise OSError("none")


def clone3_user():
    arguments = struct.pack("<8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    buffer = ctypes.create_string_buffer(arguments)
    pid = call(435, ctypes.byref(buffer), 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def type_into_terminal():
    ours, theirs = os.openpty()
    import fcntl
    fcntl.ioctl(theirs, 0x5412, b"x")


def core_pattern():
    with open("/proc/sys/kernel/core_pattern") as file:
        pattern = file.read()
    with open("/proc/sys/kernel/core_pattern", "w") as file:
        file.write(pattern)


def handle():
    buffer = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + b"\0" * 128)
    mount = ctypes.c_int()
    call(303, -100, ctypes.c_char_p(work.encode()), ctypes.byref(buffer), ctypes.byref(mount), 0)


def lending(make):
    """A file that lends its owner's or group's rights to whoever runs it."""
    path = work + "/lending"
    try:
        make(path)
        if not os.stat(path).st_mode & 0o6000:
            raise OSError("it is an ordinary file")
    finally:
        if os.path.exists(path):
            os.unlink(path)


def open_how(path):
    how = ctypes.create_string_buffer(struct.pack("<3Q", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
    os.close(call(437, -100, ctypes.c_char_p(path.encode()), ctypes.byref(how), 24))


def limit_of_process_1():
    limit = ctypes.create_string_buffer(struct.pack("<QQ", 1000, 1000))
    call(302, first, 0, ctypes.byref(limit), 0)


def stand_in():
    """For process 1, where that is the machine's."""
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    return pid


first = stand_in() if only else 1


CHECKS = {
    "write outside": lambda: write(hole),
    "read outside": lambda: open(secret).read(),
    "read outside by a link": lambda: by_link("a-link", secret),
    "read outside by a magic link": lambda: open(f"/proc/{os.getppid()}/root" + secret).read(),
    "read outside by the root of process 1": lambda: open("/proc/1/root" + secret).read(),
    "hard link from outside": lambda: os.link(secret, work + "/twin") or os.unlink(work + "/twin"),
    "rename from outside": lambda: os.rename(outside + "/moved", work + "/moved"),
    "truncate outside": lambda: os.truncate(outside + "/cut", 0),
    "chmod outside": lambda: os.chmod(secret, 0o644),
    "set times outside": lambda: os.utime(secret),
    "set an attribute outside": lambda: os.setxattr(secret, "user.x", b"x"),
    "learn whether something is outside": lambda: os.stat(secret),
    "plant a hook": lambda: write(work + "/.git/hooks/pre-commit"),
    "replace the repository": lambda: os.rename(work + "/.git", work + "/.git2") or os.rename(work + "/.git2", work + "/.git"),
    "read the shadow file": lambda: os.stat("/etc/shadow"),
    "write a program of the system": lambda: write("/usr/bin/.toolstead-probe"),
    "TCP to the host": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)),
    "multipath TCP to the host": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp), 262),
    "UDP to the host": datagram,
    "raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "packet socket": lambda: socket.socket(17, socket.SOCK_RAW, 0),
    "netlink socket": lambda: socket.socket(16, socket.SOCK_RAW, 0),
    "VM socket": lambda: socket.socket(40, socket.SOCK_STREAM, 0),
    "io_uring": lambda: call(425, 8, ctypes.create_string_buffer(120)),
    "unix socket by path": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, outside + "/socket"),
    "abstract unix socket": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
    "trace the parent": lambda: in_a_child(lambda: call(101, 0x4206, os.getppid(), 0, 0)),
    "read memory of the parent": lambda: open(f"/proc/{os.getppid()}/mem", "rb"),
    "signal a host process": lambda: os.kill(host_pid, 0),
    "environment of a host process": lambda: open(f"/proc/{host_pid}/environ").read(),
    "environment of process 1": lambda: open("/proc/1/environ").read(),
    "descriptors of process 1": lambda: os.listdir("/proc/1/fd"),
    "user namespace by unshare": lambda: in_a_child(lambda: call(272, 0x10000000)),
    "user namespace by clone": lambda: in_a_child(lambda: call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) or os._exit(0)),
    "user namespace by clone3": lambda: in_a_child(clone3_user),
    "mount": lambda: call(165, ctypes.c_char_p(b"none"), ctypes.c_char_p(work.encode()), ctypes.c_char_p(b"tmpfs"), 0, 0),
    "unmount the hooks": lambda: call(166, ctypes.c_char_p((work + "/.git/hooks").encode()), 2),
    "change the root": lambda: in_a_child(lambda: os.chroot(work)),
    "device node": lambda: os.mknod(work + "/device", 0o20666, os.makedev(1, 3)) or open(work + "/device").read(),
    "file handle": handle,
    "keyring": lambda: call(250, 0, -3, 1),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
    "performance events": lambda: call(298, ctypes.create_string_buffer(struct.pack("<IIQ", 1, 128, 0) + b"\0" * 112), 0, -1, -1, 0),
    "userfaultfd": lambda: call(323, 1),
    "core pattern": core_pattern,
    "cgroups": lambda: os.listdir("/sys/fs/cgroup"),
    "a descriptor of a folder": descriptors,
    "x32": lambda: in_a_child(lambda: call(0x40000000 | 39)),
    "type into a terminal": type_into_terminal,
    "set-uid file": lambda: lending(lambda path: write(path) or os.chmod(path, 0o4755)),
    "set-gid file": lambda: lending(lambda path: write(path) or os.chmod(path, 0o2755)),
    "set-uid file by its descriptor": lambda: lending(lambda path: os.fchmod(os.open(path, os.O_CREAT | os.O_WRONLY), 0o4755)),
    "set-uid file by opening": lambda: lending(lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))),
    "set-uid file by openat2": lambda: lending(open_how),
    "set-uid file by creat": lambda: lending(lambda path: os.close(call(85, ctypes.c_char_p(path.encode()), 0o4755))),
    "set-uid file by mknod": lambda: lending(lambda path: os.mknod(path, 0o104755)),
    "set-uid file by fchmodat2": lambda: lending(lambda path: write(path) or call(452, -100, ctypes.c_char_p(path.encode()), 0o4755, 0)),
    "limit process 1": limit_of_process_1,
    "bind process 1 to a processor": lambda: os.sched_setaffinity(first, {0}),
    "schedule process 1": lambda: os.sched_setscheduler(first, os.SCHED_IDLE, os.sched_param(0)),
    "slow process 1 down": lambda: os.setpriority(os.PRIO_PROCESS, first, 19),
    "slow all of the user down": lambda: os.setpriority(os.PRIO_USER, 0, 19),
    "keep process 1 from the disk": lambda: call(251, 1, first, 3 << 13),
}

for name, check in CHECKS.items():
    if only and name not in only:
        continue
    try:
        check()
        print(name, "O", sep="\t")
    except BaseException:
        print(name, "-", sep="\t")
if only:
    os.kill(first, signal.SIGKILL)
