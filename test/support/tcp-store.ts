import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Check } from '../../src/core/check.js';
import { MemoryStore } from '../../src/stores/memory/memory-store.js';
import type { BatchResult } from '../../src/testing/batch.js';
import { plainBatch, takeResult } from './checks.js';
import { FaultyStore } from './faulty-store.js';

/** A store in another process, reached over TCP, which can be frozen and thawed. */
export class TcpStore extends FaultyStore {
  readonly #child: ChildProcess;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (result: BatchResult) => void>();

  private constructor(child: ChildProcess, socket: Socket) {
    super(new MemoryStore());
    this.#child = child;
    this.#socket = socket;
    createInterface(socket).on('line', line => {
      const { id, result } = JSON.parse(line);
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  static async start(): Promise<TcpStore> {
    const child = spawn(process.execPath, ['--import', 'tsx', join('test/fixtures', 'echo-store.ts')], {
      cwd: join(__dirname, '../..'),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    return new TcpStore(child, socket);
  }

  override decide(checks: readonly Check[]): Promise<number> {
    this.calls += 1;
    const id = this.calls;
    return new Promise(resolve => {
      this.#waiting.set(id, result => {
        resolve(takeResult(checks, result));
      });
      this.#socket.write(`${JSON.stringify({ id, batch: plainBatch(checks) })}\n`);
    });
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  goOn(): void {
    this.#child.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    this.goOn();
    this.#socket.destroy();
    this.#child.stdin?.end();
    await once(this.#child, 'exit');
  }
}
