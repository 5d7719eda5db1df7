/** Where a release comes from: the medium this machine was started from, an archive sent to it, or a registry. */
import { parseReference } from '../../../oci/reference.ts'
import { imageDigest, pullImage, removeImage } from '../../../supervise/containerd/images.ts'
import type { Machine } from '../../area.ts'
import { credentialsOf } from '../../cri/credentials.ts'
import { criDaemon, hostsFolder, systemDaemon } from '../../cri/daemons.ts'
import { fullReference } from '../../cri/image-table.ts'
import { RegistryConfig } from '../../cri/resources/registry-config.ts'
import { archiveFiles, folderFiles, imageFiles } from './installer-image.ts'
import { openRelease, type Release, ReleaseError, type ReleaseFiles } from './release.ts'
import { findUpload, isUpload } from './uploads.ts'

/** What finding a release takes of the machine. */
export type ReleaseParts = Pick<Machine, 'kernel' | 'store' | 'supervisor' | 'version' | 'log'>

/** How a release is looked for. */
export interface FindOptions {
  readonly tell: (message: string) => void
  readonly signal: AbortSignal
  /** Take what a registry gives into memory even where there is a disk. */
  readonly inMemory?: boolean
}

/** Stage 0 leaves the key it trusts and the medium it found here. */
const publicKeyFile = '/run/ichor/key.pub'
const medium = '/run/ichor/medium'

/** The release on the medium this machine was started from; nothing where the medium carries none. */
export async function releaseOfMedium({ kernel, version }: ReleaseParts): Promise<Release | undefined> {
  const folder = `${medium}/usr/install/${version.arch}`
  if (!kernel.files.exists(`${folder}/manifest`)) return undefined
  return openRelease({ ...folderFiles(kernel, folder), origin: 'the medium' }, publicKey(kernel), version.arch)
}

/** A release by its reference: one that was sent before, or an image of a registry. Throws ReleaseError. */
export async function findRelease(machine: ReleaseParts, reference: string, options: FindOptions): Promise<Release> {
  const { kernel, version } = machine
  const files = isUpload(reference) ? await sent(machine, reference) : await pulled(machine, reference, options)
  return openRelease(files, publicKey(kernel), version.arch)
}

/** Whether a reference means the very release this machine runs. */
export function isOwnRelease({ version }: Pick<ReleaseParts, 'version'>, reference: string): boolean {
  try {
    return parseReference(reference).tag === version.tag
  } catch {
    return false
  }
}

function publicKey({ files }: ReleaseParts['kernel']): string {
  const key = files.readTextIfThere(publicKeyFile)
  if (!key) throw new ReleaseError('this system knows no key that images are signed with: start it from a medium made by mkimage.sh')
  return key
}

async function sent({ kernel, version }: ReleaseParts, reference: string): Promise<ReleaseFiles> {
  const { path, size } = findUpload(kernel, reference)
  return archiveFiles(kernel, path, size, 'the archive that was sent', version.arch)
}

async function pulled(
  { kernel, store, supervisor, version }: ReleaseParts,
  reference: string,
  options: FindOptions,
): Promise<ReleaseFiles> {
  const { tell, signal, inMemory = false } = options
  let name: string
  try {
    name = fullReference(reference)
  } catch (error) {
    throw new ReleaseError((error as Error).message)
  }
  const onDisk = !inMemory && supervisor.get('cri')?.state === 'Running'
  const [daemon, root] = onDisk ? [criDaemon, '/var/lib/containerd'] : [systemDaemon, '/system/var/lib/containerd']
  const channel = daemon.in('system')
  const credentials = credentialsOf(store.get(RegistryConfig, 'registries')?.spec.auths)
  tell(`pulling "${name}"`)
  const told = new Map<string, number>()
  const progress = ({ name: part, offset, total }: { name: string; offset: number; total: number }) => {
    const tenth = total > 0 ? Math.floor((offset * 10) / total) : 0
    if (!part.startsWith('layer-') || told.get(part) === tenth) return
    told.set(part, tenth)
    tell(`pulling "${name}": ${tenth * 10} %`)
  }
  try {
    await pullImage(channel, name, { hostsDir: hostsFolder, credentials, progress, unpack: false, signal })
  } catch (error) {
    throw new ReleaseError(`pull "${name}": ${(error as Error).message}; nothing was changed`)
  }
  const digest = await imageDigest(channel, name)
  if (!digest) throw new ReleaseError(`pull "${name}": the image is gone again; nothing was changed`)
  const find = async (blob: string) => {
    const path = `${root}/io.containerd.content.v1.content/blobs/${blob.replace(':', '/')}`
    const stats = kernel.files.lstatIfThere(path)
    return stats && { path, offset: 0, size: stats.size }
  }
  return imageFiles(kernel, { origin: `"${name}"`, find }, digest, version.arch)
}

/** Forgets what was pulled or sent for a release that is written now. */
export async function forgetRelease({ kernel, supervisor, log }: ReleaseParts, reference: string): Promise<void> {
  try {
    if (isUpload(reference)) kernel.files.removeFile(findUpload(kernel, reference).path)
    else await removeImage((supervisor.get('cri')?.state === 'Running' ? criDaemon : systemDaemon).in('system'), fullReference(reference))
  } catch (error) {
    log.debug('the image that was taken stays', { reference, error })
  }
}
