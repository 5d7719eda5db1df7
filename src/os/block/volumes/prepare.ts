import type { Machine } from '../../area.ts'
import { probeDevice } from '../device.ts'
import { type FileSystem, format } from '../format.ts'
import { runProgram } from '../program.ts'
import type { Config } from './view.ts'

/** How file systems are called by those who probe, by the names of the configuration. */
const probedNames: Readonly<Record<string, string>> = { ext4: 'extfs', swapi: 'swap' }

/** How a probed file system is called in resources. */
export const shownName = (probed: string): string => Object.entries(probedNames).find(([, name]) => name === probed)?.[0] ?? probed

/** The device holds something else than the volume should; the message says how to go on. */
export class OtherContent extends Error {
  override name = 'OtherContent'
}

/** Sees to the file system of a volume: made where there is nothing, grown where it may; anything else there is left alone. Gives its name. */
export async function prepare(parts: Pick<Machine, 'kernel' | 'spawn' | 'log'>, id: string, config: Config, path: string): Promise<string> {
  const { found, size } = await probeDevice(parts.kernel.block, path)
  const { filesystemSpec: wanted } = config.provisioning
  if (!wanted || wanted.type === 'none') return found?.name ?? ''
  const name = probedNames[wanted.type] ?? wanted.type
  if (found && found.name !== name)
    throw new OtherContent(
      `volume "${id}" is to be ${shownName(name)}, but ${path} holds ${shownName(found.name)}: nothing was changed; to give it up run "talosctl wipe disk ${path.replace('/dev/', '')}"`,
    )
  if (!found) {
    parts.log.info('making file system', { volume: id, device: path, type: name })
    await format(parts, path, { type: (name === 'extfs' ? 'ext4' : name) as FileSystem, label: wanted.label })
  } else if (name === 'extfs' && found.size !== undefined && size - found.size >= 128 << 20) {
    // ext4 grows before it is mounted, XFS afterwards.
    parts.log.info('growing file system', { volume: id, device: path })
    await runProgram(parts, ['e2fsck', '-f', '-p', path])
    await runProgram(parts, ['resize2fs', path])
  }
  return name
}
