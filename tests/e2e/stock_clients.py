#!/usr/bin/python3
"""Debian's clients of OpenStack, unmodified, many times: they are imported once, by Debian's Python, and each command runs in a process of
its own that is forked from there. A line of JSON for each comes in, {"words", "environment", "stdin"}, and one goes out: [code, output,
errors]. Until the end of the input. Beside it, for who writes these lines: class Clients."""
import json
import os
import subprocess
import sys
import tempfile

PATIENCE_S = 60


class Clients:
    """The process, and what it is asked."""

    def __init__(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(('OS_', 'PYTHON'))}
        words = ['/usr/bin/python3', '-W', 'ignore', os.path.abspath(__file__)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def run(self, words, environment, stdin=None):
        """Exit code, standard output and standard error of a command; `stdin`: a file that it reads."""
        self.process.stdin.write(json.dumps({'words': words, 'environment': environment, 'stdin': stdin}) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)


def run_here(mains, words, environment, stdin, out, err):
    """In a process of its own; never returns."""
    for name in [name for name in os.environ if name.startswith('OS_')]:
        del os.environ[name]
    os.environ.update(environment)
    with open(stdin or os.devnull, 'rb') as file:
        os.dup2(file.fileno(), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, 'w'), os.fdopen(2, 'w')
    sys.argv = words
    code = 0
    try:
        code = mains[words[0]]()
    except SystemExit as error:
        code = error.code
    except BaseException:  # pylint: disable=broad-except
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main():
    import cinderclient.shell
    import glanceclient.shell
    import openstackclient.shell
    mains = {'openstack': lambda: openstackclient.shell.main(sys.argv[1:]), 'cinder': cinderclient.shell.main, 'glance': glanceclient.shell.main}
    while True:
        line = sys.stdin.readline()
        if not line:
            return
        asked = json.loads(line)
        with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
            child = os.fork()
            if child == 0:
                run_here(mains, asked['words'], asked['environment'], asked['stdin'], out, err)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            err.seek(0)
            print(json.dumps([code, out.read(), err.read()]), flush=True)


if __name__ == '__main__':
    main()
