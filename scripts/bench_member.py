"""A volume service whose back end is memory: what is asked of it is done as soon as it is on record. So that what is measured is not a disk, and
not the processes by which a real one works there. In place of the node's own, which stands still meanwhile."""
import threading
import time
import uuid

import bench_wconfd

BEAT_S = 1
AT_ONCE = 256  # rows of one end_work
SPACE_MIB = 1 << 30


class Member(threading.Thread):
    """With `ends` false it takes what there is to be done, and does nothing about it. A member lives until stop()."""

    def __init__(self, root, host, backend, ends=True):
        super().__init__(daemon=True)
        self.client, self.beating = bench_wconfd.Client(root, 'volumed'), bench_wconfd.Client(root, 'volumed')
        self.backend, self.ends, self.over, self.error = backend, ends, False, None
        self.taken = {}  # key of a row -> claim
        known = self.client.call('wait_changes', {'serial': 0, 'kinds': ['worker']})
        self.serial, self.history = known['serial'], known['history']
        self.own = self.client.call('register_storage', {'commit_id': str(uuid.uuid4()), 'binary': 'cinder-volume', 'host': host,
                                                         'backend': backend, 'wire': 1, 'version': 'bench'})
        self.named = {'service': self.own['service'], 'generation': self.own['generation']}
        self.beat()
        self.beats = threading.Thread(target=self.beat_on, daemon=True)
        self.beats.start()
        self.start()

    def beat(self):
        self.beating.call('beat', {'services': [{**self.named, 'free_mib': SPACE_MIB, 'total_mib': SPACE_MIB}]})

    def beat_on(self):
        while not self.over:
            time.sleep(BEAT_S)
            self.beat()

    def run(self):
        try:
            while not self.over:
                news = self.client.call('wait_changes', {'history': self.history, 'serial': self.serial, 'wait_ms': 1000, 'kinds': ['worker']})
                self.serial = news['serial']
                self.work([change['key'] for change in news.get('changes', []) if change['op'] == 'put' and self.is_new(change['object'])])
        except (OSError, RuntimeError) as error:
            self.error = error

    def is_new(self, row):
        return row.get('backend') == self.backend and not row.get('service_id')

    def work(self, keys):
        for key in keys:
            self.client.ask('take_work', {'commit_id': str(uuid.uuid4()), 'key': key, **self.named})
        claims = {key: self.client.result()['claim'] for key in keys}
        self.taken.update(claims)
        done = [{'key': key, 'claim': claim, 'data': f'{key.split("/")[1]}.{claim}'} for key, claim in claims.items()] if self.ends else []
        for at in range(0, len(done), AT_ONCE):
            said = self.client.call('end_work', {'commit_id': str(uuid.uuid4()), 'items': done[at:at + AT_ONCE], **self.named})
            assert all(item['answer'] == 'passed' for item in said['items']), said

    def stop(self):
        self.over = True
        self.join()
        self.beats.join()
        self.client.close()
        self.beating.close()
        if self.error:
            raise self.error
