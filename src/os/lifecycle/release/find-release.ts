/** Finds a release: on the boot medium, in an uploaded archive, or in a registry. */
import { parseReference } from '../../../oci/reference.ts'
import { imageDigest, pullImage, removeImage } from '../../../supervise/containerd/images.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { credentialsOf, criDaemon, fullReference, hostsFolder, systemDaemon } from '../../cri/public.ts'
import { RegistryConfig } from '../../cri/resources/registry-config.ts'
import { hasRoom } from './bounded-file.ts'
import { archiveFiles, folderFiles, imageFiles } from './installer-image.ts'
import { openRelease, type Release, ReleaseError, type ReleaseFiles, ReleaseUnavailable } from './release.ts'
import { forgetUnpacked } from './unpacked-layer.ts'
import { findUpload, isUpload } from './uploads.ts'

/** Dependencies for finding a release. */
export type ReleaseDependencies = Pick<Machine, 'kernel' | 'store' | 'supervisor' | 'version' | 'log'>

/** Options for finding a release. */
export interface FindOptions {
  readonly report: (message: string) => void
  readonly signal: AbortSignal
  /** Pull into memory even if there is a disk. */
  readonly inMemory?: boolean
}

/** Where stage 0 stores its trusted key and the boot medium. */
const publicKeyFile = '/run/ichor/key.pub'
const medium = '/run/ichor/medium'

/** The release on the boot medium; undefined if it has none. */
export async function releaseOfMedium({ kernel, version }: ReleaseDependencies): Promise<Release | undefined> {
  const folder = `${medium}/usr/install/${version.arch}`
  if (!kernel.files.exists(`${folder}/manifest`)) return undefined
  return openRelease({ ...folderFiles(kernel, folder), origin: 'the medium' }, publicKey(kernel), version.arch)
}

/** Finds a release by reference: an uploaded archive, or an image in a registry. Throws ReleaseError. */
export async function findRelease(machine: ReleaseDependencies, reference: string, options: FindOptions): Promise<Release> {
  const { kernel, version } = machine
  const files = isUpload(reference) ? await sent(machine, reference) : await pulled(machine, reference, options)
  return openRelease(files, publicKey(kernel), version.arch)
}

/** Whether a reference names the running release. */
export function isOwnRelease({ version }: Pick<ReleaseDependencies, 'version'>, reference: string): boolean {
  try {
    return parseReference(reference).tag === version.tag
  } catch {
    return false
  }
}

function publicKey({ files }: ReleaseDependencies['kernel']): string {
  const key = files.readTextIfThere(publicKeyFile)
  if (!key) throw new ReleaseError('no signing key is known to this system: start it from a medium made by mkimage.sh')
  return key
}

async function sent({ kernel, version }: ReleaseDependencies, reference: string): Promise<ReleaseFiles> {
  const { path, size } = findUpload(kernel, reference)
  return archiveFiles(kernel, path, size, 'the uploaded archive', version.arch)
}

async function pulled(
  { kernel, store, supervisor, version }: ReleaseDependencies,
  reference: string,
  options: FindOptions,
): Promise<ReleaseFiles> {
  const { report, signal, inMemory = false } = options
  let name: string
  try {
    name = fullReference(reference)
  } catch (error) {
    throw new ReleaseError(messageOf(error))
  }
  const onDisk = !inMemory && supervisor.get('cri')?.state === 'Running' && hasRoom(kernel)
  const [daemon, root] = onDisk ? [criDaemon, '/var/lib/containerd'] : [systemDaemon, '/system/var/lib/containerd']
  const channel = daemon.in('system')
  const credentials = credentialsOf(store.get(RegistryConfig, 'registries')?.spec.auths)
  report(`pulling "${name}"`)
  const reported = new Map<string, number>()
  const progress = ({ name: part, offset, total }: { name: string; offset: number; total: number }) => {
    const tenth = total > 0 ? Math.floor((offset * 10) / total) : 0
    if (!part.startsWith('layer-') || reported.get(part) === tenth) return
    reported.set(part, tenth)
    report(`pulling "${name}": ${tenth * 10} %`)
  }
  try {
    await pullImage(channel, name, { hostsDir: hostsFolder, credentials, progress, unpack: false, signal })
  } catch (error) {
    throw new ReleaseUnavailable(`pull "${name}": ${messageOf(error)}; nothing was changed`)
  }
  const digest = await imageDigest(channel, name)
  if (!digest) throw new ReleaseUnavailable(`pull "${name}": the image was removed meanwhile; nothing was changed`)
  const find = async (blob: string) => {
    const path = `${root}/io.containerd.content.v1.content/blobs/${blob.replace(':', '/')}`
    const stats = kernel.files.lstatIfThere(path)
    return stats && { path, offset: 0, size: stats.size }
  }
  return imageFiles(kernel, { origin: `"${name}"`, onDisk, find }, digest, version.arch)
}

/** Removes the image or archive of a release that has been written to a slot. */
export async function forgetRelease({ kernel, supervisor, log }: ReleaseDependencies, reference: string): Promise<void> {
  try {
    forgetUnpacked(kernel)
    if (isUpload(reference)) kernel.files.removeFile(findUpload(kernel, reference).path)
    else await removeImage((supervisor.get('cri')?.state === 'Running' ? criDaemon : systemDaemon).in('system'), fullReference(reference))
  } catch (error) {
    log.debug('remove image failed', { reference, error })
  }
}
