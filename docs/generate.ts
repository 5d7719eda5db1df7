/** Writes what of docs/reference/ is made from declarations: `bun run docs`. */
import { join } from 'node:path'
import { configSchema, referencePage } from '../src/os/config/reference.ts'

/** Name → content of every file that is made. */
export const made = (): Record<string, string> => ({
  'config.schema.json': `${JSON.stringify(configSchema(), undefined, 1)}\n`,
  'configuration.md': referencePage(),
})

if (import.meta.main)
  for (const [name, content] of Object.entries(made())) await Bun.write(join(import.meta.dir, 'reference', name), content)
