#!/usr/bin/env python3
"""Linux guests under a continuous ping: the demo with GUEST=linux, its figures, and nothing left behind.

The longest gap is printed, not judged: how busy this machine is decides it too. That no guest was booted by its move is
checked by the demo itself.
"""
import os
import re
import time

import e2e
import fettlelib
from e2e import title, wait_until

ADDRESS = fettlelib.address(160)
GAP = re.compile(r'^Longest time without an answer: live migration (\d+) ms, failover ([\d.]+) s\.$', re.MULTILINE)
MOVED = re.compile(r'(web\d) +longest time without an answer to ping while it moved: (\d+) ms')


@title('/linux/node-is-emptied-under-ping#SAF-17,ARP-10')
def test_demo():
    with e2e.lab_folder() as folder:
        done = fettlelib.run_command([os.path.join(e2e.ROOT, 'scripts', 'demo'), '--build', e2e.build(), '--guest', 'linux',
                                      '--guest-dir', os.path.join(e2e.ROOT, 'build', 'guest'), '--dir', folder], 1200)
    text = f'{done.stdout[-5000:]}\n{done.stderr[-2000:]}'
    assert done.returncode == 0, f'exit code {done.returncode}:\n{text}'
    gap, moved = GAP.search(done.stdout), MOVED.findall(done.stdout)
    assert gap and sorted(name for name, _ in moved) == ['web1', 'web2'], text
    print(f'# longest ping gap: live migration {gap.group(1)} ms, failover {gap.group(2)} s', flush=True)
    assert done.stdout.strip().endswith('0 acknowledged writes lost.'), text


def went_down(lab, uuid, node):
    """Its kernel's last words."""
    with open(lab.console_path('web', uuid, node), 'rb') as file:
        return b'reboot: Power down' in file.read()


@title('/linux/migrates-and-fails-over-by-its-power-button#SAF-11,SAF-16,SAF-17')
def test_power_button():
    """One boot until somebody presses the button, and a second one on the other node, whose disk is equal."""
    with e2e.new_lab(options=()) as lab:
        fettlelib.install_linux(lab, os.path.join(e2e.ROOT, 'build', 'guest'))
        lab.cli('instance', 'create', 'web', '--disk-template', 'mirror', '--disk', 'size=16', '--memory', '128', '--pnode',
                'node2', '--snode', 'node3', '--net', 'mac=auto,link=br0', *fettlelib.linux_flags(ADDRESS))
        uuid = e2e.uuid_of(lab, 'web')
        ping = fettlelib.Ping(lab, ADDRESS)
        try:
            wait_until('the guest answers', lambda: ping.answered_since(time.time() - 0.5), 120)
            e2e.wait_healthy(lab, 'web')
            lab.do('OP_INSTANCE_MIGRATE', instance_name='web')
            e2e.wait_healthy(lab, 'web')
            assert lab.instance('web', 'pnode')['pnode'] == 'node3'
            assert not went_down(lab, uuid, 'node2'), 'it went down in its migration'
            mark = time.time()
            job = lab.do('OP_INSTANCE_FAILOVER', instance_name='web', shutdown_timeout=60, wait=90)
            began = time.time()
            assert went_down(lab, uuid, 'node3'), f'job {job}: it was not the button that stopped it'
            assert lab.instance('web', 'pnode')['pnode'] == 'node2'
            wait_until('the guest answers on node2', lambda: ping.answered_since(began), 120)
            print(f'# longest ping gap: planned failover, shutdown and boot included, {ping.longest_gap(mark):.1f} s', flush=True)
        finally:
            ping.stop()
        e2e.check_logs(lab)


if __name__ == '__main__':
    # The second one boots two more guests under emulation: a minute.
    e2e.run(test_demo, *([test_power_button] if os.environ.get('FETTLE_LONG') else []))
