import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { nodeImage } from '../../../../release.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { UsageError } from '../../failure.ts'
import { type Engine, EngineError } from './client.ts'
import { Image, ImageLine } from './replies.ts'

/** Milliseconds in which an image must be there. */
const imageDeadline = 20 * 60_000

/** The image of nodes that is taken when none is named. */
export const defaultImage = `${nodeImage.repository}:${nodeImage.tag}`

/** An image that the engine has. */
export interface FoundImage {
  readonly reference: string
  /** The release of Kubernetes inside, where the image names it. */
  readonly kubernetes: string | undefined
}

/** What is requested: a reference or the file of an image, the folder in which `mkimage.sh` leaves one, and where progress goes. */
export interface ImageRequest {
  readonly named: string | undefined
  readonly folder: string
  report(detail: string): void
}

/** Finds the image of the nodes in the engine, or brings it there: from a file, else from its registry. */
export async function provideImage(engine: Engine, { named, folder, report }: ImageRequest): Promise<FoundImage> {
  if (named && isFile(named)) return loadImage(engine, named, report)
  if (/^[./~]/.test(named ?? '')) throw new UsageError(`--image "${named}": there is no such file`)
  const reference = withTag(named ?? defaultImage)
  const present = await findImage(engine, reference)
  if (present) return present
  if (named === undefined) {
    const file = join(folder, nodeImage.file)
    if (existsSync(file)) return loadImage(engine, file, report)
    throw new UsageError(
      `the container engine has no image "${reference}": build it with "./mkimage.sh --only oci", or name a file or an image of a registry with --image`,
    )
  }
  await pullImage(engine, reference, report)
  const pulled = await findImage(engine, reference)
  if (!pulled) throw new Error(`the container engine pulled "${reference}" and does not have it`)
  return pulled
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

/** A reference with the tag that engines take for one without: a colon before the last slash is that of a port. */
export function withTag(reference: string): string {
  if (!/^[a-zA-Z0-9][\w./:@+-]{0,254}$/.test(reference))
    throw new UsageError(`--image "${reference}": write a file, or an image such as ${defaultImage}`)
  return /[:@]/.test(reference.slice(reference.lastIndexOf('/') + 1)) ? reference : `${reference}:latest`
}

async function findImage(engine: Engine, reference: string): Promise<FoundImage | undefined> {
  try {
    const { Config } = await engine.request('GET', `/images/${pathOf(reference)}/json`, Image)
    return { reference, kubernetes: Config?.Labels?.['dev.ichor.kubernetes.version'] }
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined
    throw error
  }
}

/** A name as a part of the path of a request: slashes stay as they are. */
const pathOf = (reference: string): string => reference.split('/').map(encodeURIComponent).join('/')

async function pullImage(engine: Engine, reference: string, report: (detail: string) => void): Promise<void> {
  try {
    for await (const line of engine.lines('/images/create', { query: { fromImage: reference }, deadline: imageDeadline })) {
      const { status, id, progressDetail, error } = v.parse(ImageLine, line)
      if (error) throw new Error(error)
      const { current, total } = progressDetail ?? {}
      const share = current !== undefined && total ? ` ${Math.floor((100 * current) / total)}%` : ''
      if (status) report(`pull ${reference}: ${id ? `${id}: ` : ''}${status}${share}`)
    }
  } catch (error) {
    engine.signal.throwIfAborted()
    throw new Error(
      `pull "${reference}": ${oneLine(messageOf(error))}: name an image that the registry has, or a file that "./mkimage.sh --only oci" made, with --image`,
    )
  }
}

/** Engines list one reason a line. */
const oneLine = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .join(' ')

/** Loads an archive; the engine reports the name that its image has from then on. */
async function loadImage(engine: Engine, file: string, report: (detail: string) => void): Promise<FoundImage> {
  report(`load ${file}`)
  let name: string | undefined
  try {
    for await (const line of engine.lines('/images/load', { body: Bun.file(file), deadline: imageDeadline })) {
      const { stream, error } = v.parse(ImageLine, line)
      if (error) throw new Error(error)
      name = /^Loaded image(?: ID)?: (\S+)/.exec(stream ?? '')?.[1] ?? name
    }
  } catch (error) {
    engine.signal.throwIfAborted()
    throw new Error(`load "${file}": ${oneLine(messageOf(error))}: name an archive that "./mkimage.sh --only oci" made with --image`)
  }
  const loaded = name === undefined ? undefined : await findImage(engine, name)
  if (!loaded) throw new Error(`load "${file}": the container engine reports no image: name an archive that "./mkimage.sh --only oci" made`)
  return loaded
}
