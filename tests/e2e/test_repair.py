#!/usr/bin/env python3
"""Auto-repair on real guests: each type of repair, two steps, suspension, too weak a policy, capacity, the storm brake.

All is done as a person does it: by commands, and where a command prints what to type next, by typing just that.
"""
import os
import re

import e2e
import repairs
from e2e import fettlelib, title, wait_until
from repairs import (PATIENCE_S, PREFIX, back, check_counts, create, cut, jobs_of, offline, opcodes, passes, placed, planned, policy,
                     remove, result, said, show, tags, type_what_it_says)

lab = None


# --- each type ---

@title('/repair/fix-storage#ARP-09,ARP-14,ARP-67')
def test_fix_storage():
    """The secondary is gone: a new replica elsewhere, and the guest does not notice, though more would be allowed."""
    uuid = create('fixed')
    pids = lab.qemu_processes(uuid)
    policy('fixed', 'failover')
    plan = planned('fail', 'node3', 'fixed')
    assert (plan['operations'], plan['type'], plan['to']) == (['replace-disks'], 'fix-storage', ['node2', 'node1']), plan
    cut('node3')
    kind, jobs = result('fixed', 'success')
    text = show('fixed')
    assert re.search(r'^type +fix-storage$', text, re.M) and re.search(r'^state +success$', text, re.M), text
    assert re.search(rf'^{jobs[0]} +success +INSTANCE_REPLACE_DISKS\(fixed\) ', text, re.M), text
    # Whichever the watcher sees first: the replica that has no answer, or what a person says of its node.
    said(r'^    seen +(its replica on node3 is stale: |secondary node node3 is offline: test: the power was cut$)', 'why',
         'fixed')
    assert (kind, opcodes(jobs)) == ('fix-storage', ['INSTANCE_REPLACE_DISKS']), (kind, opcodes(jobs))
    e2e.wait_healthy(lab, 'fixed')
    assert lab.instance('fixed', 'pnode', 'snodes') == {'pnode': 'node2', 'snodes': ['node1']}
    assert lab.qemu_processes(uuid) == pids, 'the guest was restarted'
    lab.do('OP_INSTANCE_SHUTDOWN', instance_name='fixed', wait=240)
    row = lab.instance('fixed', 'replica')
    printed = lab.printed('fixed', uuid, 'node2')
    counts = [fettlelib.image_count(os.path.join(lab.root(node), 'var', 'disks', name)) for node, name in
              (('node2', f'{uuid}.disk0.raw'), ('node1', f'{uuid}.{row["replica"]}.disk0.raw'))]
    assert min(counts) >= printed, f'printed {printed}, its copies have {counts}'
    remove('fixed')
    back('node3')


def check_drained(template, name):
    uuid = create(name, template)
    policy(name, 'migrate')
    plan = planned('drain', 'node2', name)
    type_what_it_says(lab.cli('plan', 'drain', 'node2'), 'node modify')
    try:
        kind, jobs = result(name, 'success')
        assert placed(name) == plan['to'], (placed(name), plan)
        assert kind == 'migrate' and opcodes(jobs)[0] == 'INSTANCE_MIGRATE', (kind, opcodes(jobs))
        row = lab.instance(name, 'pnode', 'snodes')
        assert 'node2' not in [row['pnode'], *(row['snodes'] or [])], row
        e2e.wait_counting(lab, name, uuid, row['pnode'], lab.printed(name, uuid, 'node2'))
        with open(lab.console_path(name, uuid, row['pnode']), 'rb') as file:
            assert b'START ' not in file.read(), 'the guest was booted anew'
        check_counts(name, uuid)
        remove(name)
    finally:
        lab.cli('node', 'modify', 'node2', '--drained', 'no')


@title('/repair/migrate-mirror#ARP-10,ARP-66')
def test_migrate_mirror():
    check_drained('mirror', 'drained')


@title('/repair/migrate-sharedfile#ARP-10,ARP-66')
def test_migrate_sharedfile():
    check_drained('sharedfile', 'shared')


@title('/repair/stopped-guest-of-a-drained-node#ARP-62')
def test_stopped():
    """It is moved without being started, by a policy that allows no more; started there it goes on from its last count."""
    uuid = create('still')
    lab.cli('instance', 'shutdown', 'still', '--timeout', '0')
    printed = lab.printed('still', uuid, 'node2')
    policy('still', 'migrate')
    plan = planned('drain', 'node2', 'still')
    assert plan['type'] == 'migrate' and plan['to'] == ['node3', 'node1'], plan
    try:
        type_what_it_says(lab.cli('plan', 'drain', 'node2'), 'node modify')
        kind, jobs = result('still', 'success')
        assert (kind, opcodes(jobs)) == ('migrate', ['INSTANCE_MIGRATE', 'INSTANCE_REPLACE_DISKS']), (kind, opcodes(jobs))
        row = lab.instance('still', 'pnode', 'snodes', 'status', 'replica.state')
        assert row == {'pnode': 'node3', 'snodes': ['node1'], 'status': 'ADMIN_down', 'replica.state': 'in-sync'}, row
        assert not lab.qemu_processes(uuid) and not lab.printed('still', uuid, 'node3'), 'it was started'
        assert lab.run('node', 'verify', 'node3')[0] == 0
        lab.cli('instance', 'startup', 'still')
        e2e.wait_counting(lab, 'still', uuid, 'node3', printed)
        check_counts('still', uuid)
        remove('still')
    finally:
        lab.cli('node', 'modify', 'node2', '--drained', 'no')


@title('/repair/drained-primary-and-offline-secondary#ARP-61,ARP-62')
def test_drained_and_offline():
    """A new replica to go to, there by migration, and another replica once there is a node for it: one repair."""
    uuid = create('cornered')
    policy('cornered', 'migrate')
    lab.cli('repair', 'suspend', 'instance', 'cornered')
    cut('node3')
    lab.cli('node', 'modify', 'node2', '--drained', 'yes')
    try:
        lab.cli('repair', 'resume', 'instance', 'cornered')
        wait_until('it has left the drained node', lambda: lab.instance('cornered', 'pnode', 'task_state') ==
                   {'pnode': 'node1', 'task_state': ''}, PATIENCE_S)
        passes(2)
        pending = tags('cornered', 'pending')
        assert placed('cornered') == ['node1', 'node2'] and len(pending) == 1, (placed('cornered'), pending)
        back('node3')
        kind, jobs = result('cornered', 'success')
        assert (kind, opcodes(jobs)) == ('migrate', ['INSTANCE_REPLACE_DISKS', 'INSTANCE_MIGRATE', 'INSTANCE_REPLACE_DISKS']), \
            (kind, opcodes(jobs))
        assert tags('cornered', 'result')[0][1] == pending[0][1], 'another repair than the one that was begun'
        assert placed('cornered') == ['node1', 'node3'], placed('cornered')
        e2e.wait_counting(lab, 'cornered', uuid, 'node1', lab.printed('cornered', uuid, 'node2'))
        with open(lab.console_path('cornered', uuid, 'node1'), 'rb') as file:
            assert b'START ' not in file.read(), 'the guest was booted anew'
        check_counts('cornered', uuid)
        remove('cornered')
    finally:
        lab.cli('node', 'modify', 'node2', '--drained', 'no')


@title('/repair/failover-in-two-steps#ARP-11,ARP-50,ARP-58,ARP-61')
def test_failover():
    """The primary is gone: failover, then a new replica, under one id; the policy's tag stays."""
    uuid = create('moved')
    policy('moved', 'failover')
    lab.cli('tag', 'add', 'instance', 'moved', PREFIX + 'result:failover:earlier:1600000000:failure:')
    type_what_it_says(said(r'^moved .* an earlier repair failed', 'plan', 'fail', 'node2'), 'tag remove instance moved')
    plan = planned('fail', 'node2', 'moved')
    assert plan['operations'] == ['failover', 'replace-disks'], plan
    lab.lab('power', 'node2', 'off')
    wait_until('it is called silent', lambda: 'does not answer' in lab.cli('why', 'node2'), 30)
    said(r'^node2 does not answer\. What runs there may still run, so nothing is done until', 'why', 'node2')
    text = said(r'^moved is ERROR_nodedown: node2 does not answer, but may still run it\.', 'why', 'moved')
    assert not tags('moved', 'pending'), 'nobody has said that it is dead'
    type_what_it_says(text, 'node modify')
    printed = lab.printed('moved', uuid, 'node2')
    kind, jobs = result('moved', 'success')
    assert (kind, opcodes(jobs)) == ('failover', ['INSTANCE_FAILOVER', 'INSTANCE_REPLACE_DISKS']), (kind, opcodes(jobs))
    assert len(tags('moved', 'result')) == 1 and not tags('moved', 'pending')
    assert PREFIX + 'failover' in lab.instance('moved', 'tags')['tags']
    e2e.wait_healthy(lab, 'moved')
    assert placed('moved') == plan['to'], (placed('moved'), plan)
    said(r'^\S+ \S+  Healthy: .*: repaired\.$', 'why', 'moved')
    said(r'^node2 is offline since \S+ \S+: test: the power was cut$', 'why', 'node2')
    e2e.wait_counting(lab, 'moved', uuid, 'node3', printed)
    back('node2')
    wait_until('one copy runs', lambda: len(lab.qemu_processes(uuid)) == 1, 60)
    check_counts('moved', uuid)
    remove('moved')


@title('/repair/failed-disk-of-the-primary#ARP-70,SAF-24,SAF-25')
def test_failed_disk():
    """The disks below a running guest fail, its node lives: stopped, failed over with every acknowledged write, one repair."""
    uuid = create('burnt', primary='node3', secondary='node2')
    policy('burnt', 'failover')
    e2e.wait_healthy(lab, 'burnt')
    lab.lab('disk-fail', 'node3')
    kind, jobs = result('burnt', 'success')
    assert (kind, opcodes(jobs)) == ('failover', ['INSTANCE_FAILOVER', 'INSTANCE_REPLACE_DISKS']), (kind, opcodes(jobs))
    assert len(tags('burnt', 'result')) == 1 and not tags('burnt', 'pending'), tags('burnt', 'result')
    assert placed('burnt') == ['node2', 'node1'], placed('burnt')
    said(r'^    seen +primary node node3 (cannot write to its disks|has answered its guest with I/O errors from disk 0)',
         'why', 'burnt')
    assert len(lab.qemu_processes(uuid)) == 1
    e2e.wait_counting(lab, 'burnt', uuid, 'node2', lab.printed('burnt', uuid, 'node3'))
    e2e.wait_healthy(lab, 'burnt')
    lab.lab('power', 'node3', 'off')
    back('node3')
    aside = os.path.join(lab.root('node3'), 'var', 'disks', 'aside')
    wait_until('the old images are kept aside', lambda: [name for name in os.listdir(aside) if uuid in name], 60)
    check_counts('burnt', uuid)
    remove('burnt')


@title('/repair/failover-sharedfile#ARP-11,ARP-66,ARP-68')
def test_failover_shared():
    """A guest on shared disks goes to another node by one step; what was decided is told as text and as JSON alike."""
    uuid = create('wanders', 'sharedfile')
    policy('wanders', 'failover')
    plan = planned('fail', 'node2', 'wanders')
    assert plan['operations'] == ['failover'], plan
    printed = lab.printed('wanders', uuid, 'node2')
    cut('node2')
    kind, jobs = result('wanders', 'success')
    assert (kind, opcodes(jobs)) == ('failover', ['INSTANCE_FAILOVER']), (kind, opcodes(jobs))
    node = lab.instance('wanders', 'pnode')['pnode']
    assert [node] == plan['to'], (node, plan)
    e2e.wait_counting(lab, 'wanders', uuid, node, printed)
    told = lab.json('why', 'wanders')
    steps = [one for one in told if one['verdict'] == 'act']
    assert steps[-1]['summary'] == 'Step 1 of the repair: failover.' and steps[-1]['jobs'] == [str(jobs[0])], told
    assert steps[-1]['policy'] == 'failover, by a tag of the instance', told
    assert f'{node} has room' in steps[-1]['evidence'], told
    text = lab.cli('why', 'wanders')
    for one in told:
        assert f'{one["state"]}: {one["summary"]}' in text, (one, text)
    back('node2')
    wait_until('one copy runs', lambda: len(lab.qemu_processes(uuid)) == 1, 60)
    check_counts('wanders', uuid)
    remove('wanders')


@title('/repair/reinstall-when-all-nodes-are-lost#ARP-12,ARP-65')
def test_reinstall():
    """Its only disk is gone with its node: a new one elsewhere, from the image, counting from the beginning."""
    uuid = create('anew', 'file')
    policy('anew', 'reinstall')
    assert planned('fail', 'node2', 'anew')['operations'] == ['recreate-disks', 'reinstall']
    said(r'^anew +node2 +fix-storage +Its only data is there and alive', 'plan', 'drain', 'node2')
    cut('node2')
    kind, jobs = result('anew', 'success')
    assert kind == 'reinstall' and opcodes(jobs)[:2] == ['INSTANCE_RECREATE_DISKS', 'INSTANCE_REINSTALL'], opcodes(jobs)
    node = lab.instance('anew', 'pnode')['pnode']
    assert node != 'node2'
    e2e.wait_counting(lab, 'anew', uuid, node)
    with open(lab.console_path('anew', uuid, node), 'rb') as file:
        assert b'START 0' in file.read()
    back('node2')
    wait_until('one copy runs', lambda: len(lab.qemu_processes(uuid)) == 1, 60)
    assert lab.instance('anew', 'pnode')['pnode'] == node
    remove('anew')


# --- what holds it back ---

@title('/repair/what-ends-a-suspension#ARP-17')
def test_ends_suspension():
    create('calm')
    lab.cli('repair', 'suspend', 'instance', 'calm')
    lab.cli('repair', 'suspend', 'cluster')
    both = lab.cli('repair', 'policy', 'instance', 'calm')
    assert both.count('to end it:') == 2 and 'resume cluster\n' in both and 'resume instance calm\n' in both, both
    assert lab.cli('repair', 'resume', 'instance', 'calm') == \
        'instance calm: suspended, by a tag of the cluster\n    to end it:      fettle repair resume cluster\n'
    lab.cli('repair', 'resume', 'cluster')
    policy('calm', 'failover')  # its own: that of the cluster does not count
    lab.cli('repair', 'suspend', 'cluster')
    lab.cli('repair', 'suspend', 'instance', 'calm')
    own = lab.cli('repair', 'policy', 'instance', 'calm')
    assert own.count('to end it:') == 1 and 'resume instance calm\n' in own, own
    assert 'failover, by a tag of the instance' in lab.cli('repair', 'resume', 'instance', 'calm')
    lab.cli('repair', 'resume', 'cluster')
    remove('calm')


@title('/repair/suspended-until-the-tag-is-gone#ARP-17,ARP-25,ARP-49')
def test_suspended():
    create('held')
    policy('held', 'failover')
    assert lab.cli('repair', 'suspend', 'instance', 'held') == \
        'instance held: suspended, by a tag of the instance\n    to end it:      fettle repair resume instance held\n'
    said(r'^instance +held +suspended ', 'repair', 'policy')
    said(r'^held +node2 . node3 +failover +repair is suspended, by a tag of the instance$', 'plan', 'fail', 'node2')
    before = jobs_of('held')
    cut('node2')
    passes()
    assert jobs_of('held') == before and not tags('held', 'pending'), (jobs_of('held'), tags('held', 'pending'))
    type_what_it_says(said(r'Suspended: Repair is suspended: nothing is touched\.$', 'why', 'held'), 'repair resume')
    kind, _ = result('held', 'success')
    assert kind == 'failover', kind
    back('node2')
    remove('held')


@title('/repair/suspended-in-the-middle#ARP-19,ARP-20')
def test_suspended_in_the_middle():
    """No node for the second step, and when there is one a suspension stands: the repair waits as it is."""
    create('paused', primary='node2', secondary='node3')
    policy('paused', 'failover')
    lab.cli('node', 'modify', 'node1', '--drained', 'yes')
    cut('node2')
    wait_until('the first step is done', lambda: lab.instance('paused', 'pnode', 'task_state') ==
               {'pnode': 'node3', 'task_state': ''}, PATIENCE_S)
    passes(2)
    said(r'^paused +failover +pending ', 'repair', 'list')
    lab.cli('repair', 'suspend', '--for', '2h', 'instance', 'paused')
    passes(2)
    before, pending = jobs_of('paused'), tags('paused', 'pending')
    assert len(pending) == 1, pending
    lab.cli('node', 'modify', 'node1', '--drained', 'no')
    passes()
    assert (jobs_of('paused'), tags('paused', 'pending')) == (before, pending)
    type_what_it_says(lab.cli('repair', 'history', 'paused'), 'repair resume')
    kind, jobs = result('paused', 'success')
    assert (kind, opcodes(jobs)) == ('failover', ['INSTANCE_FAILOVER', 'INSTANCE_REPLACE_DISKS']), (kind, opcodes(jobs))
    assert tags('paused', 'result')[0][1] == pending[0][1], 'another repair than the one that was suspended'
    back('node2')
    remove('paused')


@title('/repair/capacity-returns#ARP-57')
def test_capacity():
    """Nowhere to put a new replica: the repair waits without a job, and goes on when a node is there again."""
    create('waiting')
    policy('waiting', 'fix-storage')
    lab.cli('node', 'modify', 'node1', '--drained', 'yes')
    cut('node3')
    wait_until('the repair is pending', lambda: tags('waiting', 'pending'), PATIENCE_S)
    before = jobs_of('waiting')
    passes()
    assert jobs_of('waiting') == before and len(tags('waiting', 'pending')) == 1
    said(r'Pending repair: no node can be a new secondary node: node1 is drained; node2 is its primary node; node3 is its '
         r'secondary node now$', 'why', 'waiting')
    said(r'^    next look  when a node has room$', 'why', 'waiting')
    lab.cli('node', 'modify', 'node1', '--drained', 'no')
    assert result('waiting', 'success')[0] == 'fix-storage'
    assert lab.instance('waiting', 'snodes')['snodes'] == ['node1']
    back('node3')
    remove('waiting')


@title('/repair/policy-too-weak#ARP-13,ARP-46,ARP-47')
def test_weak():
    create('weak')
    policy('weak', 'migrate')
    before = jobs_of('weak')
    cut('node2')
    result('weak', 'enoperm')
    passes()
    assert len(tags('weak', 'result')) == 1, tags('weak', 'result')
    assert jobs_of('weak') == before, 'a job was submitted beyond the policy'
    assert lab.instance('weak', 'pnode')['pnode'] == 'node2'
    said(r'^weak +node2 . node3 +failover +it needs failover, the policy allows migrate$', 'plan', 'fail', 'node2')
    text = said(r'The repair needs failover, the policy allows migrate: nothing is done\.', 'why', 'weak')
    type_what_it_says(text, 'repair policy instance weak')
    kind, jobs = result('weak', 'success')
    assert kind == 'failover' and opcodes(jobs)[0] == 'INSTANCE_FAILOVER', (kind, opcodes(jobs))
    back('node2')
    remove('weak')


@title('/repair/storm-brake-and-continue')
def test_storm():
    """Two of three nodes at once look like a mistake: nothing is done until a person says go on."""
    create('stormy')
    lab.lab('power', 'node2', 'off')
    lab.lab('power', 'node3', 'off')
    offline('node2')
    offline('node3')
    wait_until('the brake is pulled', lambda: lab.query('brake', ['since', 'why']), PATIENCE_S)
    back('node3')
    policy('stormy', 'failover')
    before = jobs_of('stormy')
    passes()
    assert jobs_of('stormy') == before, 'a repair began under the brake'
    row, = lab.json('brake', 'list')
    assert row['since'] > 0 and row['nodes'] == ['node2', 'node3'] and row['why'], row
    brake = r'^The storm brake is on since .* No repair goes on until you say so: fettle repair continue$'
    assert re.search(brake, lab.cli('repair', 'list'), re.MULTILINE), 'the list of repairs hides why none goes on'
    _, verified, _ = lab.run('cluster', 'verify', check=False)
    assert 'auto-repair stands still, its storm brake is on since' in verified, verified
    text = said(r'^The storm brake is on since .* No repair goes on until you say so: fettle repair continue$', 'why', 'cluster')
    type_what_it_says(text, 'repair continue')
    kind, jobs = result('stormy', 'success')
    assert kind == 'failover' and opcodes(jobs)[0] == 'INSTANCE_FAILOVER', (kind, opcodes(jobs))
    assert not lab.query('brake', ['since'])
    back('node2')
    remove('stormy')


@title('/repair/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab, 60)
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '2000', '--watcher-interval-ms', '500')) as lab:
        repairs.lab = lab
        lab.do('OP_INSTANCE_CREATE', instance_name='witness', disk_template='diskless', memory=8, pnode='node1')
        e2e.run(test_fix_storage, test_migrate_mirror, test_migrate_sharedfile, test_stopped, test_drained_and_offline,
                test_failover, test_failed_disk, test_failover_shared, test_reinstall,
                test_suspended, test_ends_suspension, test_suspended_in_the_middle, test_capacity, test_weak, test_storm, test_logs)
