import { promised } from '../../core/maybe-promise.js';
import type { HashedSubject } from '../../core/operation.js';
import type { BlockEntry, BlockPage, BlockQuery } from '../../core/store.js';
import { blockEntry, standingBlock } from '../live-cell.js';
import type { Caller } from './caller.js';
import { listOf } from './cell-reader.js';
import type { CellReader } from './cell-reader.js';
import { isDenial, listReply } from './explain.js';
import { HASH_LENGTH, isHash, isMember } from './keys.js';
import { textOf } from './port.js';
import { INDEX, LIST, run } from './scripts.js';

/** On a cluster the list of blocks is spread over so many keys, by the first digit of the hash. */
const SHARDS = Array.from({ length: 16 }, (_, digit) => digit.toString(16));
/** Blocks remembered per list; beyond that those that end first are forgotten, though they stand. */
const MOST_PER_LIST = 10_000;
const DEFAULT_COUNT = 100;
/** One page looks at no more entries than this many times its count; the rest is for the next. */
const LOOKS_PER_ENTRY = 10;

const noop = (): void => undefined;

/**
 * Who is blocked, for operators: lists that are written when blocks start and end, in a call of their own, and believed only
 * as far as the cells agree. A list is two sorted sets, see `lua/index.lua`.
 */
export class BlockIndex {
  readonly #caller: Caller;
  readonly #cells: CellReader;
  readonly #underWay = new Set<Promise<unknown>>();
  /** Proved, and nothing has been denied since. */
  #mayWrite = false;

  constructor(caller: Caller, cells: CellReader) {
    this.#caller = caller;
    this.#cells = cells;
  }

  /** Notes a block. Errors are dropped: the block stands all the same, and nobody waits for its listing. */
  note(subject: HashedSubject, scope: string, lastsMs: number | null): void {
    const member = `${subject.hash}:${scope}`;
    this.#write(this.#shardOf(subject.hash), member, lastsMs);
    const { partHashes } = subject;
    // The only part of a subject is the subject itself, and found without a list.
    if (partHashes.length < 2) return;
    for (const part of new Set(partHashes)) this.#write(this.#listOf('part', part), member, lastsMs);
  }

  /** Resolves when all that was noted has been written, or given up. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
  }

  async page({ cursor, part, count = DEFAULT_COUNT }: BlockQuery): Promise<BlockPage> {
    await this.settled();
    // Nobody has it, and no key is named after it.
    if (part !== undefined && !isHash(part)) return { blocks: [] };
    const lists = part === undefined ? this.#shards() : [this.#listOf('part', part)];
    if (cursor === undefined) await this.#proveRights(lists[0] ?? '');
    const [start, after] = parseCursor(cursor);
    const blocks: BlockEntry[] =
      part !== undefined && cursor === undefined ? await this.#ofSubject(part) : [];
    let looks = 0;
    let last = after;
    for (let i = start; i < lists.length; i++) {
      const list = lists[i] ?? '';
      for (;;) {
        if (blocks.length >= count || looks >= count * LOOKS_PER_ENTRY)
          return { blocks, cursor: `${String(i)}:${last}` };
        const wanted = count - blocks.length;
        const members = await this.#members(list, last, wanted);
        looks += members.length;
        blocks.push(...(await this.#standing(list, members)));
        last = members.at(-1) ?? last;
        if (members.length < wanted) break;
      }
      last = '';
    }
    return { blocks };
  }

  #shards(): string[] {
    return this.#caller.port.topology === 'cluster'
      ? SHARDS.map(shard => this.#listOf('blocks', shard))
      : [this.#listOf('blocks', '0')];
  }

  #shardOf(hash: string): string {
    return this.#listOf('blocks', this.#caller.port.topology === 'cluster' ? hash.slice(0, 1) : '0');
  }

  #listOf(kind: 'blocks' | 'part', name: string): string {
    return this.#caller.keys.list(kind, name);
  }

  #write(list: string, member: string, lastsMs: number | null): void {
    const write = promised(() => this.#change(list, member, lastsMs)).catch((error: unknown) => {
      if (isDenial(error)) this.#mayWrite = false;
    });
    this.#underWay.add(write);
    void write.then(() => this.#underWay.delete(write));
  }

  #change(list: string, member: string, lastsMs: number | null): Promise<void> {
    const { port, timeArgs } = this.#caller;
    const args = [...timeArgs, String(MOST_PER_LIST), String(lastsMs ?? -1), member];
    return run(port, INDEX, [`${list}:ends`, `${list}:names`], args, noop);
  }

  /**
   * A list that nobody may write is empty, and an empty list says that nobody is blocked. Whoever asks hears which right is
   * missing instead; also in a process that has never noted a block itself.
   */
  async #proveRights(list: string): Promise<void> {
    if (this.#mayWrite) return;
    try {
      await this.#change(list, '', 0);
      this.#mayWrite = true;
    } catch (error) {
      // Any other error (a replica that only reads, a full memory) does not make the list a lie.
      if (isDenial(error)) throw error;
    }
  }

  async #members(list: string, after: string, count: number): Promise<string[]> {
    const from = after === '' ? '-' : `(${after}`;
    return run(this.#caller.port, LIST, [`${list}:names`], [from, String(count)], reply =>
      listOf(listReply(reply)[1]).map(textOf),
    );
  }

  /** The blocks among the members that really stand; the other members leave the list. */
  async #standing(list: string, members: readonly string[]): Promise<BlockEntry[]> {
    const hashes = [...new Set(members.filter(isMember).map(member => member.slice(0, HASH_LENGTH)))];
    const { now, cells } = await this.#cells.read(hashes);
    return members.flatMap(member => {
      const hash = member.slice(0, HASH_LENGTH);
      const scope = member.slice(HASH_LENGTH + 1);
      const block = standingBlock(cells.get(hash)?.find(stored => stored.scope === scope)?.cell, now);
      if (block !== undefined) return [blockEntry(hash, scope, block)];
      this.#write(list, member, 0);
      return [];
    });
  }

  async #ofSubject(hash: string): Promise<BlockEntry[]> {
    const { now, cells } = await this.#cells.read([hash]);
    return (cells.get(hash) ?? []).flatMap(({ scope, cell }) => {
      const block = standingBlock(cell, now);
      return block === undefined ? [] : [blockEntry(hash, scope, block)];
    });
  }
}

/** `list:member`, the member after which the next page begins. An unknown one begins anew. */
function parseCursor(cursor: string | undefined): [number, string] {
  const [, list = '0', member = ''] = /^(\d{1,2}):(.*)$/s.exec(cursor ?? '') ?? [];
  return [Number(list), member];
}
