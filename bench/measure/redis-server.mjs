// A redis-server of the bench's own, on a free port, without persistence.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** The program that LIMITKEEPER_REDIS_SERVER names, or the first on PATH. */
const program = process.env.LIMITKEEPER_REDIS_SERVER ?? 'redis-server';

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  await new Promise(resolve => probe.close(resolve));
  return port;
}

export async function startRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'limitkeeper-bench-'));
  const port = await freePort();
  const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const server = spawn(program, args.map(String), { stdio: 'ignore' });
  const control = new Redis({ port });
  // It tries until the server listens.
  control.on('error', () => undefined);
  const failed = new Promise((_, reject) => {
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`${program} ended before it could be used.`)));
  });
  try {
    await Promise.race([new Promise(resolve => control.once('ready', resolve)), failed]);
  } catch (error) {
    control.disconnect();
    await rm(folder, { recursive: true });
    throw error;
  }
  // It may end now.
  failed.catch(() => undefined);

  const clients = [];
  const field = (info, name) => new RegExp(`^${name}:(.+)$`, 'm').exec(info)?.[1].trim();
  return {
    /** A client that is connected. */
    open: async (options = {}) => {
      const client = new Redis({ port, ...options });
      clients.push(client);
      await once(client, 'ready');
      return client;
    },
    version: async () => field(await control.info('server'), 'redis_version'),
    /** What these commands and the whole process have used so far, in µs. A script's time holds that of what it calls. */
    used: async commands => {
      const [cpu, stats] = [await control.info('cpu'), await control.info('commandstats')];
      const usec = name => Number(/usec=(\d+)/.exec(field(stats, `cmdstat_${name}`) ?? 'usec=0')[1]);
      return {
        server: commands.reduce((sum, name) => sum + usec(name), 0),
        serverCpu: 1e6 * (Number(field(cpu, 'used_cpu_user')) + Number(field(cpu, 'used_cpu_sys'))),
      };
    },
    stop: async () => {
      for (const client of [...clients, control]) client.disconnect();
      const gone = once(server, 'exit');
      server.kill();
      await gone;
      await rm(folder, { recursive: true });
    },
  };
}
