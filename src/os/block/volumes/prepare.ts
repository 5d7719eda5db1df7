import { isMember } from '../../../wire/probe/members.ts'
import type { Machine } from '../../area.ts'
import { probeDevice } from '../device.ts'
import { type FileSystem, format } from '../format.ts'
import { fileSystemProgram } from '../program.ts'
import type { Config } from './view.ts'

/** e2fsck(8) exit code. */
const errorsCorrected = 1

/** Probed names of file systems by their names in the configuration. */
const probedNames: Readonly<Record<string, string>> = { ext4: 'extfs', swapi: 'swap' }

/** Converts a probed name to the name in resources. */
export const shownName = (probed: string): string => Object.entries(probedNames).find(([, name]) => name === probed)?.[0] ?? probed

/** The device has other content than the volume requires. The message explains how to proceed. */
export class OtherContent extends Error {
  override name = 'OtherContent'
}

/** The command that clears a device, quoted. */
export const wipeCommand = (path: string): string => `"talosctl wipe disk ${path.replace('/dev/', '')}"`

/** Explains that a device holds other content than its volume requires. */
export const otherContent = (id: string, required: string, path: string, found: string): string =>
  `volume "${id}" must be ${required}, but ${path} holds ${shownName(found)}: nothing was changed; to give it up run ${wipeCommand(path)}`

/** Prepares the file system of a volume and returns its name: creates it on an empty device, grows it if allowed. Other content is left alone. */
export async function prepare(
  machine: Pick<Machine, 'kernel' | 'spawn' | 'log'>,
  id: string,
  config: Config,
  path: string,
): Promise<string> {
  const { found, size } = await probeDevice(machine.kernel.block, path)
  const { filesystemSpec: wanted } = config.provisioning
  if (!wanted || wanted.type === 'none') {
    if (config.mount && found && isMember(found.name)) throw new OtherContent(otherContent(id, 'a file system', path, found.name))
    return found?.name ?? ''
  }
  const name = probedNames[wanted.type] ?? wanted.type
  if (found && found.name !== name) throw new OtherContent(otherContent(id, shownName(name), path, found.name))
  if (!found) {
    machine.log.info('creating file system', { volume: id, device: path, type: name })
    await format(machine, path, { type: (name === 'extfs' ? 'ext4' : name) as FileSystem, label: wanted.label })
  } else if (name === 'extfs' && found.size !== undefined && size - found.size >= 128 << 20) {
    // ext4 grows before it is mounted, XFS afterwards.
    machine.log.info('growing file system', { volume: id, device: path })
    await fileSystemProgram(machine, ['e2fsck', '-f', '-p', path], [errorsCorrected])
    await fileSystemProgram(machine, ['resize2fs', path])
  }
  return name
}
