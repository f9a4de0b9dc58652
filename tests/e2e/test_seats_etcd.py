#!/usr/bin/env python3
"""Death of wconfd at every call to the outside with the engine etcd: in a commit, a campaign, a copy, a hand-over.

What test_seats.py does for SQLite, on three candidates whose members of etcd are real (seats.py). Whatever n is: no change
that was answered is lost, none is done twice, one node is master, all copies are equal, and `cluster verify` is clean.
FETTLE_LONG=1 walks all n, otherwise a spread sample of the commit and one death of each of the others.
"""
import contextlib
import os

import e2e
import seats
import test_seats as deaths
from e2e import title
from test_seats import Change, Lock, arm, change, finish, quietly

world = None


def settle(arming, *changes):
    """What must be true after every death; the master, and its epoch."""
    master = deaths.settle(arming, *changes)
    world.verify_clean()
    for one in changes:
        one.check(master)
    master = finish(*changes)
    return master, world.role_of(master)['epoch']


def candidates():
    """The master, and the two that are not."""
    master = world.wait_master()
    return master, *(node for node in world.nodes if node is not master)


def goes_on(old, before, new, after):
    """The same node goes on under its epoch, or another one under a higher; a node that was away for longer than its
    lease begins a new epoch too."""
    assert after > before or (new is old and after == before), f'{new.name} has epoch {after}, {old.name} had {before}'
    return new is old and after == before


# --- the operations: each is a death of one process ---

def commit(arming):
    """The master, while it takes a change, a lock and a change again."""
    master = world.wait_master()
    arm(master, 'wconfd', arming)
    master = world.wait_master()
    epoch = world.role_of(master)['epoch']
    first, second, lock = Change('first'), Change('second'), Lock(master)
    arming.begin()
    for step in (lambda: first.ask(master), lock.take, lambda: second.ask(master)):
        quietly(step)
    if goes_on(master, epoch, *settle(arming, first, second)):
        lock.finish()
    else:
        lock.abandon()


def come_back(arming):
    """The master, from its start on, within its lease."""
    master, before = world.wait_master(), change('before')
    epoch = world.role_of(master)['epoch']
    arming.begin()
    master.restart('wconfd', arming.variables())
    goes_on(master, epoch, *settle(arming, before, Change('after')))


def own_copy(arming):
    """The master, which keeps a copy of its own, while others' changes come and it has none."""
    master = world.wait_master()
    epoch = world.role_of(master)['epoch']
    before = change('before')
    world.wait_equal()
    master.end('wconfd')
    for ending in ('', '-wal', '-shm', '.lock'):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(master.path('var/store.db' + ending))
    arming.begin()
    master.restart('wconfd', arming.variables())
    goes_on(master, epoch, *settle(arming, before, Change('after')))


def take_seat(arming):
    """A candidate, from the loss of the master to its first change; the third one does not try."""
    old, new, third = candidates()
    arm(new, 'wconfd', arming)
    old, new, third = (old, new, third) if world.master() is old else candidates()
    epoch = world.role_of(old)['epoch']
    before, after = change('before'), Change('after')
    world.wait_equal()
    third.end('wconfd')
    arming.begin()
    old.end('wconfd')
    world.wait(f'{new.name} is master', lambda: world.master() is new, 60, step=0.25)  # each answer is a crash point too
    after.finish(new)
    _, now = settle(arming, before, after)
    assert now > epoch, f'epoch {now} after {epoch}'


def hand_over(arming, of_old):
    old, new, _ = candidates()
    arm(old if of_old else new, 'wconfd', arming)
    old, new, _ = candidates()
    epoch = world.role_of(old)['epoch']
    before = change('before')
    world.wait_equal()
    arming.begin()
    code, said = world.person(old, '--to', new.name)
    master, now = settle(arming, before, Change('after'))
    assert code != 0 or now > epoch, said
    assert code != 0 or master is new or arming.happened(), f'{said}; {master.name} is master'


def resign(arming):
    """The master that hands its seat to another node."""
    hand_over(arming, True)


def inherit(arming):
    """The node to which it is handed."""
    hand_over(arming, False)


def follow(arming):
    """A candidate, while changes come."""
    deaths.follow(arming)
    world.verify_clean()


def refill(arming):
    """A candidate that has lost its copy, from its start on."""
    deaths.refill(arming)
    world.verify_clean()


# (operation, ids, deaths in the short walk)
WALKS = (
    (commit, 'WCF-16,SAF-01,SAF-04,SAF-07', 4),
    (take_seat, 'SAF-01,SAF-04,SAF-07,SAF-08', 1),
    (resign, 'SAF-01,SAF-07,SAF-08', 1),
    (follow, 'WCF-04,SAF-07', 1),
)
LONG_WALKS = (
    (come_back, 'WCF-16,SAF-01', 0),
    (own_copy, 'WCF-04,SAF-07', 0),
    (inherit, 'SAF-01,SAF-07,SAF-08', 0),
    (refill, 'WCF-04,SAF-07', 0),
)


@title('/seats-etcd/no-sanitizer-report')
def test_logs():
    world.assert_no_reports()


if __name__ == '__main__':
    with seats.World('etcd', (*seats.DAEMONS, 'luxid')) as world:
        deaths.world = world
        world.wait_master()
        world.wait_equal()
        world.verify_clean()
        rows = WALKS + LONG_WALKS if e2e.LONG else WALKS
        e2e.run(*(deaths.walker(*row, suite='seats-etcd') for row in rows), test_logs)
