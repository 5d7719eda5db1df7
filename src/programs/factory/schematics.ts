/** The schematics that were posted: in memory, and in a folder when there is one. */
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FactoryError } from './factory-error.ts'
import { defaultSchematic, idOf, parseSchematic, type Schematic } from './schematic.ts'

/** Most bytes of all schematics together. */
export const schematicsLimit = 64 << 20

/** Holds schematics by their ids. */
export class Schematics {
  readonly #held = new Map([[defaultSchematic.id, defaultSchematic]])
  readonly #folder: string | undefined
  #size = 0

  /** Reads the folder, which is made when it is missing; a file that is not what its name states is ignored. */
  constructor(
    folder?: string,
    readonly limit = schematicsLimit,
  ) {
    this.#folder = folder
    if (folder === undefined) return
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      if (!/^[0-9a-f]{64}$/.test(name)) continue
      const bytes = readFileSync(join(folder, name))
      if (idOf(bytes.toString()) === name && isStable(bytes.toString())) this.#hold(parseSchematic(bytes))
    }
  }

  /** The schematic with an id. Throws FactoryError. */
  get(id: string): Schematic {
    const found = this.#held.get(id)
    if (!found) throw new FactoryError(404, `schematic "${id.slice(0, 64)}" is not known here: post it to /schematics`)
    return found
  }

  /** Keeps a schematic, which may be known already. Throws FactoryError when there is no room. */
  add(schematic: Schematic): void {
    if (this.#held.has(schematic.id)) return
    if (!isStable(schematic.yaml))
      throw new FactoryError(
        400,
        'schematic: a text begins with an empty line or a key is "<<", which is another after it is written and read',
      )
    if (this.#size + schematic.yaml.length > this.limit)
      throw new FactoryError(507, `the schematics here have ${this.#size} bytes, at most ${this.limit} are kept`)
    if (this.#folder !== undefined) {
      const path = join(this.#folder, schematic.id)
      writeFileSync(`${path}.new`, schematic.yaml, { mode: 0o600 })
      renameSync(`${path}.new`, path)
    }
    this.#hold(schematic)
  }

  #hold(schematic: Schematic): void {
    this.#held.set(schematic.id, schematic)
    this.#size += schematic.yaml.length
  }
}

/** Whether a canonical form is read as what it was written from: the emitter of the field loses leading breaks. */
function isStable(yaml: string): boolean {
  try {
    return parseSchematic(Buffer.from(yaml)).yaml === yaml
  } catch (error) {
    if (error instanceof FactoryError) return false
    throw error
  }
}
