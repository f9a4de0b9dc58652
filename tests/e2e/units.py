"""Labs whose daemons run with the capabilities and system calls of their units (FETTLE_LAB_UNITS=1): in the place of each daemon is a
script that becomes it by way of sandbox.py, which says what is in force and what is not."""
import glob
import json
import os
import shutil
import stat

import sandbox

DAEMONS = ('apid', 'luxid', 'mond', 'noded', 'rapid', 'rconfd', 'volumed', 'watcher', 'wconfd')
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


def make_build(build, root, folder):
    """A build in an empty folder; its path."""
    copy_programs(build, folder)
    plan = os.path.join(folder, 'plan.json')
    with open(plan, 'w', encoding='utf-8') as file:
        json.dump(sandbox.plan(glob.glob(os.path.join(root, 'etc/systemd/fettle-*.service.in'))), file)
    for daemon in DAEMONS:
        path = os.path.join(folder, 'src', 'daemons', daemon, f'fettle-{daemon}')
        os.rename(path, path + '.real')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(SCRIPT.format(real=path + '.real', sandbox=sandbox.__file__, plan=plan, unit=f'fettle-{daemon}.service.in'))
        os.chmod(path, stat.S_IRWXU)
    return folder
