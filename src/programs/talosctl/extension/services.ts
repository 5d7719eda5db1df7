/** The services in an extension, checked before an image is built of it: on a node a bad specification is only logged. */
import { readFileSync } from 'node:fs'
import { parseExtensionService, ServiceSpecError } from '../../../os/runtime/extensions/service-spec.ts'
import type { ExtensionEntry } from './content.ts'
import { ExtensionError } from './manifest.ts'

const specification = /^\/usr\/local\/etc\/containers\/[^/]+\.yaml$/
const limit = 256 << 10

/** Throws ExtensionError with a line for each service that could not run. */
export function checkServices(origin: string, entries: readonly ExtensionEntry[]): void {
  const faults = entries.filter(({ path, type }) => type === 'file' && specification.test(path)).flatMap((entry) => faultOf(entry, entries))
  if (faults.length > 0) throw new ExtensionError(origin, faults)
}

function faultOf({ path, source, size }: ExtensionEntry, entries: readonly ExtensionEntry[]): string[] {
  if (source === undefined) return []
  if (size > limit) return [`"${path}" has ${size} bytes, more than ${limit}`]
  try {
    const { name, entrypoint } = parseExtensionService(readFileSync(source, 'utf8'))
    const root = `/usr/local/lib/containers/${name}`
    if (!entries.some((entry) => entry.path.startsWith(`${root}/`))) return [`"${path}": the service has no root, "${root}" is missing`]
    return hasProgram(`${root}${entrypoint}`, entries) ? [] : [`"${path}": container.entrypoint "${entrypoint}" is not in "${root}"`]
  } catch (error) {
    if (!(error instanceof ServiceSpecError)) throw error
    return [`"${path}": ${error.message}`]
  }
}

/** Whether there is a file or link at a path; a folder on the way may be a link, and then it is not followed. */
function hasProgram(path: string, entries: readonly ExtensionEntry[]): boolean {
  const links = entries.filter(({ type }) => type === 'symlink').map((entry) => entry.path)
  return entries.some((entry) => entry.path === path && entry.type !== 'dir') || links.some((link) => path.startsWith(`${link}/`))
}
