#!/usr/bin/env python3
"""Stands in for systemd where none runs: runs a program with the capabilities and system calls of a unit.

    sandbox.py plan UNIT...           what the units say, as JSON, with the groups of system calls (@debug) taken apart
    sandbox.py run PLAN UNIT PROGRAM  becomes the program; PLAN is a file with that JSON

In force: CapabilityBoundingSet, NoNewPrivileges, SystemCallFilter, SystemCallErrorNumber, RestrictAddressFamilies,
RestrictNamespaces, RestrictRealtime, LockPersonality, MemoryDenyWriteExecute, User. Not in force, as they need control groups:
DeviceAllow, DevicePolicy and SocketBindDeny. File systems and the network are up to the caller. The filters are those that systemd 252
makes, by way of the same library, libseccomp.
"""
import ctypes
import errno
import json
import os
import pwd
import socket
import subprocess
import sys

ALLOW, ERRNO, KILL = 0x7fff0000, 0x00050000, 0x80000000
NOT_EQUAL, EQUAL, AT_LEAST, MASKED = 1, 4, 5, 7
WRITE, EXECUTE = 2, 4
NAMESPACES = 0x7e020080  # CLONE_NEW…
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES = ('CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE '
                'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN '
                'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE '
                'MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE').split()


# --- what units say ---

def read(path):
    """{key: [values]}, over all sections."""
    values = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            if '=' in line and not line.startswith('#'):
                key, value = line.strip().split('=', 1)
                values.setdefault(key, []).append(value)
    return values


def members(word):
    """The system calls of a word of SystemCallFilter."""
    if not word.startswith('@'):
        return {word}
    said = subprocess.run(['systemd-analyze', 'syscall-filter', word], capture_output=True, text=True, check=True).stdout
    words = [line.strip() for line in said.splitlines()[1:]]
    return set().union(*(members(one) for one in words if one and not one.startswith('#')))


def system_calls(lines):
    """The first line says whether the list is of what is allowed; a later one with ~ takes out."""
    allow, names = not lines[0].startswith('~'), set()
    for line in lines:
        named = set().union(*(members(word) for word in line.lstrip('~').split()))
        names = names | named if line.startswith('~') != allow else names - named
    return {'allow': allow, 'names': sorted(names | members('@default') if allow else names)}


def plan(paths):
    return {os.path.basename(path): {**read(path), 'calls': system_calls(read(path)['SystemCallFilter'])} for path in paths}


# --- becoming the program ---

class Compare(ctypes.Structure):
    _fields_ = [('arg', ctypes.c_uint), ('op', ctypes.c_int), ('a', ctypes.c_uint64), ('b', ctypes.c_uint64)]


class Filter:
    def __init__(self, default):
        self.lib = ctypes.CDLL('libseccomp.so.2')
        self.lib.seccomp_init.restype = ctypes.c_void_p
        self.lib.seccomp_init.argtypes = [ctypes.c_uint32]
        self.lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                                    ctypes.POINTER(Compare)]
        self.lib.seccomp_load.argtypes = [ctypes.c_void_p]
        self.context = self.lib.seccomp_init(default)
        assert self.context

    def add(self, action, name, *compares):
        number = self.lib.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # of another architecture, or newer than the library
            return
        failed = self.lib.seccomp_rule_add_array(self.context, action, number, len(compares), (Compare * len(compares))(*compares))
        assert failed == 0, (name, os.strerror(-failed))

    def load(self):
        assert self.lib.seccomp_load(self.context) == 0


def filter_calls(values):
    refusal = ERRNO | errno.EPERM if values.get('SystemCallErrorNumber') == ['EPERM'] else KILL
    calls = values['calls']
    filtered = Filter(refusal if calls['allow'] else ALLOW)
    for name in calls['names']:
        filtered.add(ALLOW if calls['allow'] else refusal, name)
    filtered.load()


def on(values, key):
    return values.get(key) == ['yes']


def filter_arguments(values):
    filtered, refused = Filter(ALLOW), ERRNO | errno.EPERM
    families = sorted(getattr(socket, name) for name in values['RestrictAddressFamilies'][0].split())
    for family in set(range(46)) - set(families):
        filtered.add(ERRNO | errno.EAFNOSUPPORT, 'socket', Compare(0, EQUAL, family, 0))
    filtered.add(ERRNO | errno.EAFNOSUPPORT, 'socket', Compare(0, AT_LEAST, 46, 0))
    if on(values, 'RestrictNamespaces'):
        filtered.add(refused, 'setns')
        filtered.add(ERRNO | errno.ENOSYS, 'clone3')  # its flags are in memory; the C library takes clone then
        for bit in range(32):
            if NAMESPACES & 1 << bit:
                filtered.add(refused, 'clone', Compare(0, MASKED, 1 << bit, 1 << bit))
                filtered.add(refused, 'unshare', Compare(0, MASKED, 1 << bit, 1 << bit))
    if on(values, 'MemoryDenyWriteExecute'):
        filtered.add(refused, 'mmap', Compare(2, MASKED, WRITE | EXECUTE, WRITE | EXECUTE))
        filtered.add(refused, 'mprotect', Compare(2, MASKED, EXECUTE, EXECUTE))
        filtered.add(refused, 'pkey_mprotect', Compare(2, MASKED, EXECUTE, EXECUTE))
    if on(values, 'RestrictRealtime'):
        for policy in (1, 2, 6):  # SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
            filtered.add(refused, 'sched_setscheduler', Compare(1, EQUAL, policy, 0))
    if on(values, 'LockPersonality'):
        filtered.add(refused, 'personality', Compare(0, NOT_EQUAL, 0, 0))
    filtered.load()


def become(values):
    """The unit's user, if this is root still: whoever has started it may have done that."""
    user = pwd.getpwnam(values['User'][0]) if 'User' in values else None
    if os.geteuid() != 0:
        assert user and os.getresuid() == (user.pw_uid,) * 3 and os.getresgid() == (user.pw_gid,) * 3, (user, os.getresuid(), os.getresgid())
        return
    os.setgroups([])
    if user:
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


def run(values, words):
    libc = ctypes.CDLL(None, use_errno=True)
    kept = {word.removeprefix('CAP_') for word in values['CapabilityBoundingSet'][0].split()}
    assert kept <= set(CAPABILITIES), kept
    for number, name in enumerate(CAPABILITIES):
        if name not in kept:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # a kernel may not have the last ones
    assert values['NoNewPrivileges'] == ['yes'] and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    os.environ.update(word.split('=', 1) for line in values.get('Environment', []) for word in line.split())
    become(values)
    filter_arguments(values)
    filter_calls(values)
    os.execv(words[0], words)


if __name__ == '__main__':
    if sys.argv[1] == 'plan':
        json.dump(plan(sys.argv[2:]), sys.stdout)
    else:
        with open(sys.argv[2], encoding='utf-8') as chosen:
            run(json.load(chosen)[sys.argv[3]], sys.argv[4:])
