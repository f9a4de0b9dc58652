#!/usr/bin/env python3
"""What is installed fits together: programs, units, manual pages, completions, documentation.

The build that the other tests use is installed into a folder, without building anything. In the long form `make install` does it all, below /usr.
"""
import configparser
import glob
import json
import os
import re
import subprocess
import tempfile

import e2e
from e2e import title

SERVICES = ('apid', 'mond', 'rapid', 'noded', 'wconfd', 'luxid', 'watcher', 'rconfd', 'volumed')
PROGRAMS = ('fettle-job', 'fettle-lab', 'fettle-failstop.so', 'fettle-relay.so', *(f'fettle-{name}' for name in SERVICES))
staged = None


def command(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


class Staged:
    """An installation below a folder that stands for /."""

    def __init__(self, folder, prefix):
        self.folder, self.prefix = folder, prefix

    def below(self, *parts):
        return self.path(os.path.join(self.prefix, *parts))

    def path(self, installed):
        """Where a file is that will be `installed`."""
        return self.folder + installed

    def sections(self, unit):
        """Of a unit: {section: {key: value}}; of a key that stands twice the last one."""
        parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=('=',))
        parser.optionxform = str
        parser.read(self.below('lib/systemd/system', unit), encoding='utf-8')
        return parser


def options(build):
    return {one['name']: one['value'] for one in json.loads(command('meson', 'introspect', '--buildoptions', build))}


def stage(folder):
    if not e2e.LONG:
        command('meson', 'install', '-C', e2e.build(), '--no-rebuild', '--quiet', '--destdir', folder)
        return Staged(folder, options(e2e.build())['prefix'])
    command('make', '-C', e2e.ROOT, 'install', f'DESTDIR={folder}', 'PREFIX=/usr', f'INSTALL_BUILD={e2e.build()}-install', timeout=1500)
    return Staged(folder, '/usr')


@title('/install/programs')
def test_programs():
    """Each is where the others look for it, and can be run."""
    assert os.listdir(staged.folder) == [staged.prefix.split('/')[1]], os.listdir(staged.folder)
    for name in PROGRAMS:
        assert os.access(staged.below('libexec/fettle', name), os.X_OK), name
    fettle, noded = staged.below('bin/fettle'), staged.below('sbin/fettle-noded')
    assert os.readlink(noded) == os.path.join(staged.prefix, 'libexec/fettle/fettle-noded'), os.readlink(noded)
    assert re.fullmatch(r'fettle \d+\.\d+\.\d+\n', command(fettle, '--version'))
    with open(staged.below('libexec/fettle/fettle-luxid'), 'rb') as file:
        assert os.path.join(staged.prefix, 'libexec/fettle').encode() + b'\0' in file.read(), 'it looks elsewhere for fettle-job'
    loose = [path for path in glob.glob(staged.folder + '/**', recursive=True)
             if not os.path.islink(path) and os.stat(path).st_mode & 0o022]
    assert not loose, f'others may write: {loose}'


@title('/install/units-name-what-is-there')
def test_units():
    units = sorted(os.listdir(staged.below('lib/systemd/system')))
    assert units == sorted(['fettle.target', *(f'fettle-{name}.service' for name in SERVICES)]), units
    assert sorted(staged.sections('fettle.target')['Unit']['Wants'].split()) == sorted(units[:-1]), 'what the target starts'
    for unit in units:
        sections = staged.sections(unit)
        with open(staged.below('lib/systemd/system', unit), encoding='utf-8') as file:
            assert not re.search(r'@\w+@', file.read()), f'{unit}: a place was not filled in'
        if unit != 'fettle.target':
            program = sections['Service']['ExecStart'].split()[0]
            assert program == os.path.join(staged.prefix, 'libexec/fettle', unit.removesuffix('.service')), program
            assert os.access(staged.path(program), os.X_OK), program
            # A host whose user was not made yet (217: USER) is no reason to try five times a second, for ever.
            values = sections['Service']
            assert ('User' in values) == (values.get('RestartPreventExitStatus') == '217'), (unit, dict(values))
        for document in sections['Unit']['Documentation'].split():
            assert os.path.isfile(staged.path(document.removeprefix('file:'))), document
    with open(staged.below('lib/tmpfiles.d/fettle.conf'), encoding='utf-8') as file:
        folders = re.findall(r'^d (\S+) 0755 root root -$', file.read(), re.M)
    assert folders == [f'/{top}/fettle' for top in ('etc', 'var/lib', 'var/log', 'run')], folders


@title('/install/manual-pages-of-all-commands-and-daemons')
def test_manual():
    pages = {os.path.relpath(path, staged.below('share/man')) for path in glob.glob(staged.below('share/man/man*/*'))}
    nouns = [one['noun'] for one in json.loads(command(staged.below('bin/fettle'), 'help', '--json'))['nouns']]
    wanted = {f'man1/{"-".join(filter(None, ("fettle", noun)))}.1' for noun in [*nouns, '']} | {f'man8/fettle-{name}.8' for name in SERVICES}
    assert pages == wanted, pages ^ wanted
    for page in pages:
        with open(staged.below('share/man', page), encoding='utf-8') as file:
            others = re.findall(r'^\.BR (\S+) \((\d)\)', file.read(), re.M)
        dead = [name for name, section in others if f'man{section}/{name}.{section}'.replace('\\', '') not in pages]
        assert not dead, (page, dead)


@title('/install/completions-are-taken-by-the-shells')
def test_completions():
    """bash finds a completion by the command's name; both are scripts that their shell can read."""
    folder = staged.below('share/bash-completion/completions')
    assert os.listdir(folder) == ['fettle.bash'], os.listdir(folder)
    said = command('bash', '--norc', '-c', f'. {folder}/fettle.bash && complete -p fettle')
    assert said.startswith('complete ') and said.endswith(' fettle\n'), said
    zsh = staged.below('share/zsh', 'vendor-completions' if staged.prefix == '/usr' else 'site-functions', '_fettle')
    with open(zsh, encoding='utf-8') as file:
        assert file.readline() == '#compdef fettle\n'
    command('zsh', '-n', zsh)


@title('/install/documentation')
def test_documentation():
    """The guide, the reference and what is for Prometheus lie beside each other, so that each page finds what it links to."""
    for folder in ('guide', 'monitoring', 'reference'):
        there = staged.below('share/doc/fettle', folder)
        assert sorted(os.listdir(there)) == sorted(os.listdir(os.path.join(e2e.ROOT, 'docs', folder)))
        for page in os.listdir(there):
            with open(os.path.join(there, page), encoding='utf-8') as file:
                for target in re.findall(r'\]\(([^)#:]+\.md)[^)]*\)', file.read()):
                    assert os.path.exists(os.path.join(there, target)), f'{folder}/{page} links to {target}'


with tempfile.TemporaryDirectory(prefix='fettle-install-', dir='/var/tmp') as top:
    os.umask(0o022)
    staged = stage(os.path.join(top, 'root'))
    e2e.run(test_programs, test_units, test_manual, test_completions, test_documentation)
