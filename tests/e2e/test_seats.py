#!/usr/bin/env python3
"""Death of wconfd and noded at every call to the outside while the configuration changes hands.

Three candidates' daemons (seats.py). One of them kills itself right before its n-th write, sync or send (io/crash.h) in
a commit, a campaign, a copy or a take-over. Whatever n is: what was answered is there wholly, what was not is there
wholly or not at all, it can be repeated, one node is master, and all copies are equal in the end.
FETTLE_LONG=1 walks all n, otherwise a spread sample.
"""
import contextlib
import os
import time
import uuid

import e2e
import seats
from e2e import title

SAMPLE = 6
SAMPLE_OF_FAILOVERS = 2  # which take some seconds each
SAMPLE_OF_PROMISES = 1
LOST = (OSError, seats.CallFailed)

world = None
run_number = 0


# --- arming ---

class Arming:
    """The variables that arm one process, and the files that they speak of."""

    def __init__(self, at=None, since=True):
        global run_number  # pylint: disable=global-statement
        run_number += 1
        self.at = at
        self.base = os.path.join(world.directory, f'run-{run_number}')
        self.since = since
        self.passed = None  # points, when it was over

    def variables(self):
        values = {'FETTLE_CRASH_ONCE': self.base + '.once', 'FETTLE_CRASH_LOG': self.base + '.log'}
        if self.at:
            values['FETTLE_CRASH_AT'] = str(self.at)
        if self.since:
            values['FETTLE_CRASH_SINCE'] = self.base + '.since'
        return values

    def begin(self):
        with open(self.base + '.since', 'w', encoding='utf-8'):
            pass

    def over(self):
        """From now on it does not die any more; what it passes after that is no point to die at."""
        self.passed = self.points()
        with contextlib.suppress(FileExistsError), open(self.base + '.once', 'x', encoding='utf-8') as file:
            file.write('over')

    def happened(self):
        with open(self.base + '.once', encoding='utf-8') as file:
            return not file.read()

    def points(self):
        """How many points the armed process has passed, until it was over."""
        if self.passed is not None:
            return self.passed
        with contextlib.suppress(FileNotFoundError), open(self.base + '.log', encoding='utf-8') as file:
            return len(file.readlines())
        return 0


def arm(node, daemon, arming):
    """Restarts a daemon with its variables, and waits until it does its duty."""
    node.restart(daemon, arming.variables())
    world.wait(f'{daemon} of {node.name} is ready', lambda: node.ready(daemon))
    world.wait_master()


# --- changes ---

class Change:
    """Two tags in one transaction, which is repeated under its id until it is answered."""

    def __init__(self, name):
        self.id = str(uuid.uuid4())
        self.names = (f'{name}-{run_number}-a', f'{name}-{run_number}-b')
        self.serial = None

    def ask(self, node):
        with seats.Line(node) as line, world.owner(node) as owner:
            answer = line.call('commit', owner=owner, commit_id=self.id,
                               changes=world.tags(*self.names))
        assert self.serial in (None, answer['serial']), f'{self.names}: answered {self.serial}, then {answer["serial"]}'
        self.serial = answer['serial']

    def check(self, node):
        """Wholly there, or not at all; surely there if it was answered, and soon if no commit waits for copies."""
        if self.serial and world.copies_lag:
            world.wait(f'{self.names} is on {node.name}', lambda: world.versions(node, *self.names)[0])
        found = set(world.versions(node, *self.names))
        assert len(found) == 1, f'{self.names} is half done on {node.name}: {found}'
        assert self.serial is None or found == {self.serial}, f'{self.names}: answered {self.serial}, {node.name} has {found}'

    def finish(self, node):
        """Repeats it until it is answered, as a careful caller does."""
        self.check(node)
        stored = world.versions(node, *self.names)[0]
        def answered():
            with contextlib.suppress(*LOST):
                self.ask(node)
            return self.serial
        world.wait(f'{self.names} is answered', answered)
        assert stored in (0, self.serial), f'{self.names} was stored as {stored}, repeated it is {self.serial}'
        self.check(node)


def change(name):
    """One that is answered."""
    one = Change(name)
    one.finish(world.wait_master())
    return one


class Lock:
    """A lock that two owners want."""

    def __init__(self, node):
        self.name = f'instance/web{run_number}'
        self.node = node
        self.owners = [world.livelock(node, f'luxid-{os.getpid()}-{run_number}{letter}') for letter in 'ab']
        self.granted = False

    def ask(self, owner=0, mode='exclusive'):
        with seats.Line(self.node) as line:
            return line.call('update_locks', owner={'job': 'luxid', 'livelock': self.owners[owner]},
                             locks=[{'name': self.name, 'mode': mode}])['granted']

    def take(self):
        self.granted = self.ask()
        assert self.granted

    def finish(self):
        """What was answered holds for others too; then it goes."""
        if self.granted:
            assert not self.ask(owner=1), f'{self.name} is granted to two owners'
        assert self.ask(), f'{self.name} is not granted to its owner'
        self.abandon()
        with seats.Line(self.node) as line:
            world.wait(f'{self.name} is free', lambda: not any(lock['name'] == self.name
                                                               for lock in line.call('list_all_locks')['locks']))

    def abandon(self):
        """Its owners are dead."""
        for name in self.owners:
            world.let_go(name)


def settle(arming, *changes):
    """What must be true after every death."""
    for node in world.nodes:
        node.up()
    finish(*changes)
    arming.over()
    master = finish(*changes)
    for node in world.nodes:
        for one in changes:
            one.check(node)
    world.check_positions()
    return master


def finish(*changes):
    master = world.wait_master()
    for one in changes:
        one.finish(master)
    world.wait_equal()
    return master


# --- the operations: each is a death of one process ---

def quietly(call, *args):
    with contextlib.suppress(*LOST):
        call(*args)


def commit(arming):
    """The master, while it takes a change, a lock and a change again."""
    master = world.wait_master()
    epoch = world.role_of(master)['epoch']
    arm(master, 'wconfd', arming)
    first, second, lock = Change('first'), Change('second'), Lock(master)
    arming.begin()
    for step in (lambda: first.ask(master), lock.take, lambda: second.ask(master)):
        quietly(step)
    settle(arming, first, second)
    assert world.role_of(master)['epoch'] == epoch, 'a restarted wconfd keeps its epoch'
    lock.finish()


def campaign(arming, boot):
    master = world.wait_master()
    epoch = world.role_of(master)['epoch']
    before = change('before')
    if boot:
        master.end('wconfd')
        os.unlink(master.path('run/locks.journal'))
    arming.begin()
    master.restart('wconfd', arming.variables())
    after = Change('after')
    after.finish(world.wait_master())
    settle(arming, before, after)
    now = world.role_of(master)['epoch']
    assert now == epoch if not boot else now > epoch, f'epoch {now} after {epoch}'


def come_back(arming):
    """The master, from its start on: it goes on under its epoch."""
    campaign(arming, False)


def begin_anew(arming):
    """The master, from its start after a reboot on: a new epoch."""
    campaign(arming, True)


def candidate():
    """One that is not the master."""
    master = world.wait_master()
    return next(node for node in world.nodes if node is not master)


def follow(arming):
    """A candidate, while changes come."""
    node = candidate()
    arm(node, 'wconfd', arming)
    world.wait_equal()
    arming.begin()
    changes = [change('first'), change('second')]
    settle(arming, *changes)


def refill(arming):
    """A candidate that has lost its copy, from its start on."""
    node, before = candidate(), change('before')
    node.end('wconfd')
    for ending in ('', '-wal', '-shm', '.lock'):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(node.path('var/store.db' + ending))
    arming.begin()
    node.restart('wconfd', arming.variables())
    settle(arming, before, change('after'))


def make_master(node):
    """The person says so until it is."""
    refused = []
    def is_master():
        if world.master() is node:
            return True
        role = node.role()
        if role and role['seat'] == 'follows':
            code, said = world.person(node, '--to', node.name)
            if code != 0:
                refused[:] = [said]
        return False
    try:
        world.wait(f'{node.name} is master', is_master, step=0.1)
    except AssertionError as error:
        raise AssertionError(f'{error}\nthe person was told: {refused}') from error


def failover(arming, armed):
    """`armed`(node to be, other candidate, old master) gives the process that dies: (node, daemon), or when it is
    started next."""
    old = world.wait_master()
    new, other = [node for node in world.nodes if node is not old]
    before = change('before')
    world.wait_equal()
    armed(arming, new, other, old)
    world.wait_equal()
    old.reboot()
    arming.begin()
    make_master(new)
    after = change('after')
    old.up()
    assert settle(arming, before, after) is new
    before.ask(new)  # as somebody who has lost the answer of the old master
    assert os.path.exists(old.path(f'var/store.db.epoch-{old_epoch(old)}')), 'its store is kept aside'


def old_epoch(node):
    """Of the newest store that it has put away."""
    return max(int(name.rsplit('-', 1)[1]) for name in os.listdir(node.path('var'))
               if name.startswith('store.db.epoch-') and name.rsplit('-', 1)[1].isdigit())


def take_over(arming):
    """The wconfd that is told to take over, until it ends to start anew."""
    failover(arming, lambda arming, new, other, old: arm(new, 'wconfd', arming))


def succeed(arming):
    """The same one when it starts as the engine."""
    def when_it_starts(arming, new, _other, _old):
        new.coming['wconfd'] = arming.variables()
    failover(arming, when_it_starts)


def promise_own(arming):
    """noded of the node that takes over."""
    failover(arming, lambda arming, new, other, old: arm(new, 'noded', arming))


def promise_other(arming):
    """noded of the other candidate, which is asked for its promise."""
    failover(arming, lambda arming, new, other, old: arm(other, 'noded', arming))


def replaced(arming):
    """The wconfd of the old master when it comes back and is not needed any more."""
    def when_it_starts(arming, _new, _other, old):
        old.coming['wconfd'] = arming.variables()
    failover(arming, when_it_starts)


FAILOVERS = {take_over: SAMPLE_OF_FAILOVERS, succeed: SAMPLE_OF_FAILOVERS, replaced: SAMPLE_OF_FAILOVERS,
             promise_own: SAMPLE_OF_PROMISES, promise_other: SAMPLE_OF_PROMISES}
# (operation, ids)
WALKS = (
    (commit, 'WCF-16,SAF-01,SAF-04,SAF-07'),
    (come_back, 'WCF-16,SAF-01'),
    (begin_anew, 'WCF-16,SAF-01,SAF-06'),
    (follow, 'WCF-04,SAF-07'),
    (refill, 'WCF-04,SAF-07'),
    (take_over, 'SAF-01,SAF-07'),
    (succeed, 'SAF-01,SAF-07'),
    (replaced, 'SAF-01,SAF-07'),
    (promise_own, 'SAF-01,SAF-07'),
    (promise_other, 'SAF-01,SAF-07'),
)


def shares(sample, count):
    """Which points are taken, as shares of all."""
    if e2e.LONG:
        return [at / count for at in range(1, count + 1)]
    return [(2 * i + 1) / (2 * sample) for i in range(sample)]


def counted(operation):
    """How many points it passes. How often it asks and waits differs from one run to the next: the long walk takes the fewest
    of two."""
    found = []
    for _ in range(2 if e2e.LONG else 1):
        arming = Arming()
        operation(arming)
        found.append(arming.points())
    return min(found)


def kill_at(operation, at):
    """(Whether it died there, how many points it has passed.)"""
    arming = Arming(at)
    operation(arming)
    return arming.happened(), arming.points()


def kill(operation, share, count):
    """One death; (whether it came to that, points there are). The short walk asks again where it has passed fewer points than
    were counted."""
    for _ in range(1 if e2e.LONG else 2):
        at = max(1, round(count * share))
        died, passed = kill_at(operation, at)
        if died:
            break
        assert count / 2 <= passed < at, f'nothing died at point {at} of {count}, and it has passed {passed}'
        count = passed
    return died, count


def walk(operation, sample):
    start = time.monotonic()
    count = first = counted(operation)
    assert count, 'it passes no crash point'
    reached, failures, places = 0, [], shares(sample, count)
    for share in places:
        try:
            died, now = kill(operation, share, count)
        except AssertionError as error:
            failures.append(f'killed at {share:.3f} of {count} (run {run_number}): {error}')
            if not e2e.LONG:
                break
            continue
        reached += died
        count = count if e2e.LONG else now
    print(f'# {operation.__name__}: {first} crash points, {reached} of {len(places)} deaths, {time.monotonic() - start:.1f} s', flush=True)
    assert not failures, '\n'.join(failures)
    wanted = -(-len(places) * 3 // 4)
    assert reached >= wanted, f'{operation.__name__}: {reached} of {len(places)} armed points were reached, {wanted} should be'


def walker(operation, ids, sample, suite='seats'):
    return title(f'/{suite}/{operation.__name__.replace("_", "-")}#{ids}')(lambda: walk(operation, sample))


@title('/seats/no-sanitizer-report')
def test_logs():
    world.assert_no_reports()


if __name__ == '__main__':
    with seats.World() as world:
        world.wait_master()
        world.wait_equal()
        e2e.run(*(walker(operation, ids, FAILOVERS.get(operation, SAMPLE)) for operation, ids in WALKS), test_logs)
