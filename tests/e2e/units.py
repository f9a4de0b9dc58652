"""Labs whose daemons run with the users, capabilities and system calls of their units (FETTLE_LAB_UNITS=1): in the place of each daemon is
a script that becomes it by way of sandbox.py, which says what is in force and what is not. The users are those that the packages make."""
import glob
import grp
import json
import os
import pwd
import shutil

import mounts
import sandbox

DAEMONS = ('apid', 'luxid', 'mond', 'noded', 'rapid', 'rconfd', 'volumed', 'watcher', 'wconfd')
USERS = {'apid': 'fettle-apid', 'mond': 'fettle-mond', 'rapid': 'fettle-rapid'}
# What a command runs in their names has no unit; the leak checker would need system calls that they have not.
SCRIPT = '''#!/bin/sh
case " $* " in *" --restore "*|*" join "*|*" --forget-mastership "*) exec {real} "$@";; esac
export ASAN_OPTIONS=detect_leaks=0
exec python3 {sandbox} run {plan} {unit} {real} "$@"
'''


def copy_programs(build, folder):
    """Our programs in the layout of a build, which they find each other by."""
    source = os.path.join(build, 'src')
    for path in glob.glob(os.path.join(source, '**', 'fettle*'), recursive=True):
        if os.path.isfile(path) and (os.access(path, os.X_OK) or path.endswith('.so')):
            to = os.path.join(folder, 'src', os.path.relpath(path, source))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
    os.mkdir(os.path.join(folder, 'meson-private'))


def make_users(folder):
    """This process and its children see a machine that has them, which is what a host with the packages is."""
    missing = [name for name in USERS.values() if name not in [one.pw_name for one in pwd.getpwall()]]
    if not missing:
        return
    taken = {one.pw_uid for one in pwd.getpwall()} | {one.gr_gid for one in grp.getgrall()}
    numbers = [number for number in range(999, 99, -1) if number not in taken]
    mounts.enter()
    for over, line in (('/etc/passwd', '{0}:x:{1}:{1}::/nonexistent:/usr/sbin/nologin\n'), ('/etc/group', '{0}:x:{1}:\n')):
        path = shutil.copy(over, folder)
        os.chmod(path, 0o644)
        with open(path, 'a', encoding='utf-8') as file:
            file.writelines(line.format(name, number) for name, number in zip(missing, numbers))
        mounts.lay_over(path, over)


def make_build(build, root, folder):
    """A build in an empty folder; its path."""
    make_users(folder)
    copy_programs(build, folder)
    helper = shutil.copy(sandbox.__file__, folder)  # where any user may read it
    plan = os.path.join(folder, 'plan.json')
    with open(plan, 'w', encoding='utf-8') as file:
        json.dump(sandbox.plan(glob.glob(os.path.join(root, 'etc/systemd/fettle-*.service.in'))), file)
    for daemon in DAEMONS:
        path = os.path.join(folder, 'src', 'daemons', daemon, f'fettle-{daemon}')
        os.rename(path, path + '.real')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(SCRIPT.format(real=path + '.real', sandbox=helper, plan=plan, unit=f'fettle-{daemon}.service.in'))
        os.chmod(path, 0o755)
    return folder
