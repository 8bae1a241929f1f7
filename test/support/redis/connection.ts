import { connect, type Socket } from 'node:net';

/** What a server answers: RESP2, with error replies as values of their own where they are nested. */
export type Reply = string | number | null | ReplyError | Reply[];

/** An error reply of the server; `code` is its first word (`READONLY`, `OOM`, …). */
export class ReplyError extends Error {
  readonly code: string;
  constructor(message: string) {
    super(message);
    this.code = message.split(' ', 1)[0] ?? '';
  }
}

interface Pending {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A connection of the tests' own, independent of the clients under test: it neither reconnects nor queues nor retries.
 * Replies come in the order of the calls, so calls made in one tick reach the server together.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #pending: Pending[] = [];
  #unread: Buffer = Buffer.alloc(0);
  #broken: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', chunk => {
      this.#read(chunk);
    });
    socket.on('close', () => {
      this.#fail(new Error('The connection to Redis was closed.'));
    });
    socket.on('error', error => {
      this.#fail(error);
    });
  }

  static open(port: number, password?: string): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        const connection = new Connection(socket);
        if (password === undefined) resolve(connection);
        else connection.call('AUTH', password).then(() => resolve(connection), reject);
      });
    });
  }

  get usable(): boolean {
    return this.#broken === undefined;
  }

  call(...args: readonly (string | number)[]): Promise<Reply> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    const parts = args.map(arg => {
      const text = String(arg);
      return `$${String(Buffer.byteLength(text))}\r\n${text}\r\n`;
    });
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#socket.write(`*${String(args.length)}\r\n${parts.join('')}`);
    });
  }

  close(): void {
    this.#socket.destroy();
    this.#fail(new Error('The connection to Redis was closed.'));
  }

  #fail(error: Error): void {
    this.#broken ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }

  #read(chunk: Buffer): void {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    let from = 0;
    for (;;) {
      const parsed = parse(this.#unread, from);
      if (parsed === undefined) break;
      from = parsed.next;
      const pending = this.#pending.shift();
      if (parsed.reply instanceof ReplyError) pending?.reject(parsed.reply);
      else pending?.resolve(parsed.reply);
    }
    this.#unread = this.#unread.subarray(from);
  }
}

/** One reply of RESP2, or `undefined` while a part of it is still on its way. */
function parse(bytes: Buffer, from: number): { reply: Reply; next: number } | undefined {
  const end = bytes.indexOf('\r\n', from);
  if (end < 0) return undefined;
  const kind = String.fromCharCode(bytes[from] ?? 0);
  const head = bytes.toString('utf8', from + 1, end);
  const next = end + 2;
  if (kind === '+') return { reply: head, next };
  if (kind === '-') return { reply: new ReplyError(head), next };
  const size = Number(head);
  if (kind === ':') return { reply: size, next };
  if (size < 0) return { reply: null, next };
  if (kind === '$') {
    if (bytes.length < next + size + 2) return undefined;
    return { reply: bytes.toString('utf8', next, next + size), next: next + size + 2 };
  }
  const replies: Reply[] = [];
  let position = next;
  while (replies.length < size) {
    const element = parse(bytes, position);
    if (element === undefined) return undefined;
    replies.push(element.reply);
    position = element.next;
  }
  return { reply: replies, next: position };
}
