/** What parsers use of Bun, for Node: the search runs there. It is in place before any parser is evaluated. */
import { createHash } from 'node:crypto'
import { matchesGlob } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { crc32, gzipSync } from 'node:zlib'
import { parse } from 'yaml'

class CryptoHasher {
  readonly #hash

  constructor(algorithm: string) {
    this.#hash = createHash(algorithm)
  }

  update(bytes: string | Uint8Array): this {
    this.#hash.update(bytes)
    return this
  }

  digest(encoding: 'hex'): string {
    return this.#hash.digest(encoding)
  }
}

class Glob {
  constructor(readonly pattern: string) {}

  match(path: string): boolean {
    return matchesGlob(path, this.pattern)
  }
}

const hash = { crc32: (bytes: string | Uint8Array) => crc32(bytes) }
Object.assign(globalThis, { Bun: { YAML: { parse }, hash, CryptoHasher, Glob, gzipSync, deepEquals: isDeepStrictEqual } })
