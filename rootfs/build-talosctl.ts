/**
 * `bun run build:talosctl`: talosctl alone, for other computers than this one: `dist/talosctl-<os>-<arch>` for each of
 * `--target=<os>-<arch>` (repeatable; default: macOS on both processors). The runtime for them comes from the package registry.
 */
import { parseArgs } from 'node:util'
import { compileTalosctl, talosctlTargets } from './build/binary.ts'
import { installDependencies } from './build/dependencies.ts'
import { failed } from './build/failure.ts'
import { formatSize } from './build/progress.ts'

try {
  const { values } = parseArgs({ options: { target: { type: 'string', multiple: true } } })
  await installDependencies()
  for (const target of values.target ?? ['darwin-arm64', 'darwin-amd64']) {
    if (!Object.hasOwn(talosctlTargets, target))
      throw new Error(`there is no target "${target}": there are ${Object.keys(talosctlTargets).join(', ')}`)
    const path = await compileTalosctl(target)
    console.log(`${path}: ${formatSize(Bun.file(path).size)}`)
  }
} catch (error) {
  failed(error)
}
