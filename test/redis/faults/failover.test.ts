import { setTimeout as wait } from 'node:timers/promises';
import { CLIENTS } from '../../support/redis/clients.js';
import {
  expectHealthy,
  expectPromisesKept,
  figures,
  limitersOver,
  load,
  recovered,
  report,
} from '../../support/redis/load.js';
import { startSentinel } from '../../support/redis/sentinel.js';
import { stage } from '../../support/redis/stage.js';

jest.setTimeout(60_000);
const { onEnd, storeOver } = stage();

describe.each(CLIENTS)('$name', kind => {
  it.each(['failover', 'crash'] as const)(
    'follows the sentinel to the replica without a restart (%s of the master under load)',
    async how => {
      const sentinel = await startSentinel();
      onEnd(() => sentinel.stop());
      const subjected = limitersOver(await storeOver(kind.sentinel(sentinel)));
      await expectHealthy(subjected, 'before');

      const running = load(subjected, {
        requests: 1_200,
        perSecond: 360,
        subject: i => `number ${String(i)}`,
      });
      await wait(300);
      const master = await sentinel[how]();
      const outcomes = await running;
      const ms = await recovered(subjected);
      report(`sentinel ${how}, ${kind.name}`, outcomes, { 'recovered after ms': ms.toFixed(0) });
      expectPromisesKept(outcomes);
      if (how === 'crash') expect(figures(outcomes).degraded).toBeGreaterThan(0);
      await expectHealthy(subjected, 'after');
      // It is the new master that counts.
      expect(Number(await master.call('DBSIZE'))).toBeGreaterThan(0);
      expect((await subjected.limiters.open.inspect('after')).length).toBeGreaterThan(0);
    },
  );
});
