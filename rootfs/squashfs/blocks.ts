/**
 * Compressed blocks, each kept in a cache by the hash of its content: when one program changes, only the
 * blocks that differ are compressed again.
 */
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Block, Press } from '../../src/programs/factory/root/data.ts'
import { hashOf, used } from '../build/cache.ts'
import type { Compressor } from './compressor.ts'

/** Compresses blocks, some at a time, remembering them. */
export class BlockPress implements Press {
  readonly #folder: string
  readonly compressor: Compressor
  #compressed = 0
  readonly #running = new Map<string, Promise<Block>>()

  constructor(cache: string, compressor: Compressor) {
    this.compressor = compressor
    this.#folder = join(cache, compressor.name)
    mkdirSync(this.#folder, { recursive: true })
  }

  /** How many blocks were not in the cache. */
  get fresh(): number {
    return this.#compressed
  }

  /** Compresses one block. */
  press(content: Uint8Array): Promise<Block> {
    const key = hashOf(content)
    const running = this.#running.get(key) ?? this.#press(key, content).finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    return running
  }

  async #press(key: string, content: Uint8Array): Promise<Block> {
    const folder = join(this.#folder, key.slice(0, 2))
    const path = join(folder, key)
    let bytes: Uint8Array
    if (existsSync(path)) {
      used(path)
      bytes = new Uint8Array(await readFile(path))
    } else {
      bytes = await this.compressor.press(content)
      this.#compressed++
      mkdirSync(folder, { recursive: true })
      const unfinished = `${path}.${process.pid}`
      await writeFile(unfinished, bytes)
      renameSync(unfinished, path)
    }
    return bytes.length < content.length ? { bytes, compressed: true } : { bytes: content, compressed: false }
  }
}
