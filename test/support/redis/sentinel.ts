import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findRedisServer } from './binaries.js';
import { Connection, type Reply } from './connection.js';
import { freePort, makeFolder, removeFolder, startProcess } from './processes.js';
import { type RedisServer, startRedis, until } from './server.js';

/** A sentinel (quorum 1) that watches one master with one replica. */
export interface RedisSentinel {
  readonly host: string;
  readonly port: number;
  /** The name under which the sentinel knows the pair. */
  readonly name: string;
  /** The two servers; which of them is the master changes. */
  readonly servers: readonly RedisServer[];
  master(): Promise<RedisServer>;
  /** Orders the sentinel to make the replica the master; the old master lives on as a replica. Resolves with the new one. */
  failover(): Promise<RedisServer>;
  /** Kills the master; resolves with the new one once the sentinel has noticed by itself. */
  crash(): Promise<RedisServer>;
  stop(): Promise<void>;
}

export async function startSentinel(): Promise<RedisSentinel> {
  const name = 'limits';
  const program = await findRedisServer();
  const master = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${String(master.port)}`] });
  const servers = [master, replica];
  await until('the replica is in step', async () => (await replica.info('master_link_status')) === 'up');

  const folder = await makeFolder('limitkeeper-sentinel-');
  const port = await freePort();
  const file = join(folder, 'sentinel.conf');
  // The sentinel rewrites this file: it must be its own.
  await writeFile(
    file,
    [
      `port ${String(port)}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `logfile ${join(folder, 'log')}`,
      `sentinel monitor ${name} 127.0.0.1 ${String(master.port)} 1`,
      // It asks every second: with less than two, one late answer would be a failover of its own.
      `sentinel down-after-milliseconds ${name} 2000`,
      `sentinel failover-timeout ${name} 5000`,
      '',
    ].join('\n'),
  );
  const sentinel = startProcess(program, [file, '--sentinel'], folder);

  const ask = async (...command: readonly string[]): Promise<Reply> => {
    const connection = await Connection.open(port);
    try {
      return await connection.call(...command);
    } finally {
      connection.close();
    }
  };
  const current = async (): Promise<RedisServer> => {
    const [, at] = (await ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as string[];
    const found = servers.find(server => server.port === Number(at));
    if (found === undefined)
      throw new Error(`The sentinel names a master on port ${String(at)}, which is none of ours.`);
    return found;
  };
  const stop = async (): Promise<void> => {
    await sentinel.end();
    await Promise.all(servers.map(server => server.stop()));
    await removeFolder(folder);
  };
  const taken = async (old: RedisServer): Promise<RedisServer> => {
    await until('the sentinel names another master', async () => (await current()).port !== old.port);
    const next = await current();
    await until(
      'the other one is a master',
      async () => ((await next.call('ROLE')) as Reply[])[0] === 'master',
    );
    return next;
  };

  try {
    await until('the sentinel knows master and replica', () =>
      ask('SENTINEL', 'REPLICAS', name).then(
        replicas => Array.isArray(replicas) && replicas.length === 1,
        () => false,
      ),
    );
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    host: '127.0.0.1',
    port,
    name,
    servers,
    master: current,
    async failover() {
      const old = await current();
      // It refuses (NOGOODSLAVE) until it has seen the replica in good health.
      await until('the sentinel starts the failover', () =>
        ask('SENTINEL', 'FAILOVER', name).then(
          () => true,
          () => false,
        ),
      );
      const next = await taken(old);
      // The sentinel would tell the old master after some ten seconds, in these words; what it counts until then is lost.
      await old.call('REPLICAOF', '127.0.0.1', next.port);
      await old.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      return next;
    },
    async crash() {
      const old = await current();
      await old.kill();
      return taken(old);
    },
    stop,
  };
}
