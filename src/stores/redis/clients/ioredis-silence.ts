import { Flying, InFlight } from '../../../core/in-flight.js';
import type { IoredisClient } from './ioredis-client.js';
import { Reconnector } from './ioredis-probe.js';

const LOOK_EVERY_MS = 250;
/** Looks in a row without a byte after which a connection may be dead: four deadlines of the usual length. */
const SILENT_LOOKS = 4;
/** A call whose caller gave up so long ago proves that it is not just slow. */
const OVERDUE_MS = 750;
/** For calls of operators, which may be sent without an end. They are given up after five seconds, and this is to be found before. */
const PATIENCE_MS = 3000;
/** The server is silent on purpose while one of these waits. */
const BLOCKING = /^(?:b[lrz]|xread|wait)/i;

/** A call under way. */
export class Sent extends Flying {
  readonly expires: number;

  constructor(expires: number) {
    super();
    this.expires = expires === Infinity ? performance.now() + PATIENCE_MS : expires;
  }
}

/**
 * Finds a connection that is dead without having been closed: a firewall or a balancer that drops a flow tells neither end, and
 * the client would write into it for a quarter of an hour. Nothing at all has come for four deadlines while calls wait, and a
 * new connection is answered: then the client is made to connect anew. A server that is frozen or busy answers no new
 * connection either, and keeps the one that it has.
 */
export class SilenceWatch<T extends Sent> {
  readonly underWay = new InFlight<T>();
  readonly #client: IoredisClient;
  readonly #reconnector: Reconnector;
  #timer: NodeJS.Timeout | undefined;
  #stream: IoredisClient['stream'];
  #heard: number | undefined;
  #silent = 0;

  constructor(client: IoredisClient, reconnector = new Reconnector(client)) {
    this.#client = client;
    this.#reconnector = reconnector;
  }

  /** A call begins. */
  add(sent: T): void {
    this.underWay.add(sent);
    if (this.#timer === undefined) this.#start();
  }

  remove(sent: T): void {
    this.underWay.remove(sent);
  }

  #start(): void {
    this.#silent = 0;
    this.#stream = this.#client.stream;
    this.#heard = this.#stream?.bytesRead;
    this.#timer = setInterval(() => {
      this.#look();
    }, LOOK_EVERY_MS).unref();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const { status, stream } = this.#client;
    if (this.underWay.size === 0 || status !== 'ready' || stream?.bytesRead === undefined) {
      this.#stop();
      return;
    }
    if (stream !== this.#stream || stream.bytesRead !== this.#heard) {
      this.#stream = stream;
      this.#heard = stream.bytesRead;
      this.#silent = 0;
      return;
    }
    this.#silent += 1;
    if (this.#silent < SILENT_LOOKS || !this.#isOverdue()) return;
    const heard = this.#heard;
    this.#reconnector.consider(() => stream.bytesRead === heard);
  }

  #isOverdue(): boolean {
    const first = this.#client.commandQueue?.peekFront?.()?.command?.name;
    if (first !== undefined && BLOCKING.test(first)) return false;
    const before = performance.now() - OVERDUE_MS;
    return this.underWay.list().some(({ expires }) => expires < before);
  }

  close(): void {
    this.#stop();
    this.#reconnector.close();
  }
}
