"""A good client beside an attack on a daemon: it is answered all the time, and by the same process at the end."""
import e2e
from e2e import wait_until


class Good(e2e.Beside):
    """Asks again and again; `ask` raises if the answer is no good one."""

    def __init__(self, ask):
        super().__init__()
        self.ask, self.answered, self.error = ask, 0, None

    def run(self):
        while not self.over and not self.error:
            try:
                self.ask()
                self.answered += 1
            except Exception as error:  # pylint: disable=broad-except
                self.error = error

    def goes_on(self, since):
        if self.error:
            raise self.error
        return self.answered >= since + 5


class Attacked:
    """`daemon` tells of the process as the lab knows it."""

    def __init__(self, daemon, ask):
        self.daemon, self.good = daemon, Good(ask)

    def __enter__(self):
        self.before = self.daemon()
        self.good.__enter__()
        return self

    def is_answered(self):
        since = self.good.answered
        wait_until('the good client is answered', lambda: self.good.goes_on(since), 60)

    def __exit__(self, kind, *_):
        try:
            if not kind:
                self.is_answered()
        finally:
            self.good.__exit__()
        if not kind:
            now = self.daemon()
            assert (now['pid'], now['restarts']) == (self.before['pid'], self.before['restarts']), (now, self.before)
