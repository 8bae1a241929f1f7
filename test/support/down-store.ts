import { MemoryStore } from 'limitkeeper';

/** A store that cannot be reached, from the first call on. */
export class DownStore extends MemoryStore {
  override decide(): never {
    throw new Error('connection refused');
  }
}
