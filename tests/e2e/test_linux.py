#!/usr/bin/env python3
"""Linux guests under a continuous ping: the demo with GUEST=linux, its figures, and nothing left behind.

The longest gap is printed, not judged: how busy this machine is decides it too. That no guest was booted by its move is
checked by the demo itself.
"""
import glob
import os
import re
import subprocess

import e2e
from e2e import title

GAP = re.compile(r'^Longest time without an answer: live migration (\d+) ms, failover ([\d.]+) s\.$', re.MULTILINE)
MOVED = re.compile(r'(web\d) +longest time without an answer to ping while it moved: (\d+) ms')


@title('/linux/node-is-emptied-under-ping#SAF-17,ARP-10')
def test_demo():
    before = set(glob.glob('/var/tmp/fettle-lab-*'))
    done = subprocess.run([os.path.join(e2e.ROOT, 'scripts', 'demo'), '--build', e2e.build(), '--guest', 'linux',
                           '--guest-dir', os.path.join(e2e.ROOT, 'build', 'guest')],
                          capture_output=True, text=True, check=False, timeout=1200)
    text = f'{done.stdout[-5000:]}\n{done.stderr[-2000:]}'
    assert done.returncode == 0, f'exit code {done.returncode}:\n{text}'
    gap, moved = GAP.search(done.stdout), MOVED.findall(done.stdout)
    assert gap and sorted(name for name, _ in moved) == ['web1', 'web2'], text
    print(f'# longest ping gap: live migration {gap.group(1)} ms, failover {gap.group(2)} s', flush=True)
    assert done.stdout.strip().endswith('0 acknowledged writes lost.'), text
    left = set(glob.glob('/var/tmp/fettle-lab-*')) - before
    assert not left, f'left behind: {left}'


if __name__ == '__main__':
    e2e.run(test_demo)
