/** Writes docs/reference/, and the section of docs/boot.md on kernel parameters, from the declarations in the code: `bun run docs`. */
import { join } from 'node:path'
import { configSchema, referencePage } from '../src/os/config/reference.ts'
import { apiPage } from './generate/api-page.ts'
import { commandsPage } from './generate/commands-page.ts'
import { withKernelParameters } from './generate/kernel-parameters.ts'
import { resourcesPage } from './generate/resources-page.ts'

/** Name → content of every generated file. */
export const made = async (): Promise<Record<string, string>> => ({
  'api.md': await apiPage(),
  'commands.md': await commandsPage(),
  'config.schema.json': `${JSON.stringify(configSchema(), undefined, 1)}\n`,
  'configuration.md': referencePage(),
  'resources.md': await resourcesPage(),
})

if (import.meta.main) {
  for (const [name, content] of Object.entries(await made())) await Bun.write(join(import.meta.dir, 'reference', name), content)
  const boot = join(import.meta.dir, 'boot.md')
  await Bun.write(boot, withKernelParameters(await Bun.file(boot).text()))
}
