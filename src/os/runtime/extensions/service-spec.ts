/**
 * Services of system extensions: one specification a file in /usr/local/etc/containers, in the format of Talos. Keys that are not
 * known are ignored, as an extension may be made for a newer release.
 */

import * as v from 'valibot'
import { parse } from 'yaml'
import type { SpecMount } from '../../../supervise/containerd/spec.ts'
import type { RestartPolicy } from '../../../supervise/definition.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { NetworkNeed } from '../../network/public.ts'

/** What a service waits for. */
export interface ExtensionDependencies {
  readonly services: readonly string[]
  /** Files or folders that must exist. */
  readonly paths: readonly string[]
  readonly network: readonly NetworkNeed[]
  readonly time: boolean
  /** An ExtensionServiceConfig document with the name of the service. */
  readonly configuration: boolean
}

/** A service of an extension. */
export interface ExtensionService {
  readonly name: string
  /** Path of the program in the root of the service. */
  readonly entrypoint: string
  readonly args: readonly string[]
  /** `NAME=value`. */
  readonly environment: readonly string[]
  /** A file of the node with lines `NAME=value`, read at each start. */
  readonly environmentFile?: string | undefined
  readonly mounts: readonly SpecMount[]
  readonly writeableRootfs: boolean
  readonly writeableSysfs: boolean
  /** In place of the usual ones. */
  readonly maskedPaths?: readonly string[] | undefined
  readonly readonlyPaths?: readonly string[] | undefined
  readonly rootPropagation?: 'private' | 'rslave' | 'rshared' | 'shared' | undefined
  readonly depends: ExtensionDependencies
  readonly restart: RestartPolicy
  readonly logToConsole: boolean
}

/** A specification that cannot be used. */
export class ServiceSpecError extends Error {
  override name = 'ServiceSpecError'
}

/** Scalars are texts here, so that an argument or a variable may look like a number. */
const text = v.string('must be a text')
const texts = v.optional(v.nullable(v.array(text, 'must be a list')))
const flag = v.optional(v.nullable(v.picklist(['true', 'false'], 'must be true or false')))
const absolute = v.pipe(text, v.regex(/^\/[^\0]*$/, 'must be an absolute path'))
const count = v.pipe(text, v.regex(/^\d{1,10}$/, 'must be a number'))
const mappings = v.optional(v.nullable(v.array(v.object({ containerid: count, hostid: count, size: count }))))

const Mount = v.object({
  source: v.optional(text),
  destination: absolute,
  type: v.optional(text),
  options: texts,
  uidmappings: mappings,
  gidmappings: mappings,
})

const needs = { addresses: 'address', connectivity: 'connectivity', hostname: 'hostname', etcfiles: 'etcfiles' } as const
const needNames = Object.keys(needs) as (keyof typeof needs)[]

const Dependency = v.pipe(
  v.object({
    service: v.optional(v.pipe(text, v.nonEmpty('must be the id of a service'))),
    path: v.optional(absolute),
    network: v.optional(v.array(v.picklist(needNames, `must be some of ${needNames.join(', ')}`))),
    time: flag,
    configuration: flag,
  }),
  v.check(
    ({ service, path, network, time, configuration }) =>
      [service, path, network?.length, time === 'true', configuration === 'true'].filter(Boolean).length === 1,
    'must have exactly one of service, path, network, time and configuration',
  ),
)

const propagations = ['private', 'rslave', 'rshared', 'shared'] as const

const Security = v.object({
  writeableRootfs: flag,
  writeableSysfs: flag,
  maskedPaths: texts,
  readonlyPaths: texts,
  rootfsPropagation: v.optional(v.nullable(v.picklist(propagations, `must be one of ${propagations.join(', ')}`))),
})

const Spec = v.object({
  name: v.pipe(text, v.regex(/^[-_a-z0-9]{1,63}$/, 'must be lower-case letters, digits, "-" and "_"')),
  container: v.object({
    entrypoint: v.pipe(text, v.nonEmpty('is required')),
    args: texts,
    environment: v.optional(v.nullable(v.array(v.pipe(text, v.regex(/^[^=\0]+=[^\0]*$/, 'must be NAME=value'))))),
    environmentFile: v.optional(v.nullable(absolute)),
    mounts: v.optional(v.nullable(v.array(Mount))),
    security: v.optional(v.nullable(Security)),
  }),
  depends: v.optional(v.nullable(v.array(Dependency))),
  restart: v.picklist(['always', 'never', 'untilSuccess'], 'must be always, never or untilSuccess'),
  logToConsole: flag,
})

/** Parses a specification. Throws ServiceSpecError. */
export function parseExtensionService(yaml: string): ExtensionService {
  let value: unknown
  try {
    value = parse(yaml, { schema: 'failsafe', maxAliasCount: 0 })
  } catch (error) {
    throw new ServiceSpecError(`not YAML: ${messageOf(error).split('\n')[0]}`)
  }
  const { success, output, issues } = v.safeParse(Spec, value)
  if (!success) {
    const [issue] = issues
    throw new ServiceSpecError(
      `${v.getDotPath(issue) ?? 'the specification'} ${issue.received === 'undefined' ? 'is required' : issue.message}`,
    )
  }
  const { name, container, depends, restart, logToConsole } = output
  const { entrypoint, args, environment, environmentFile, mounts, security } = container
  return {
    name,
    entrypoint: entrypoint.startsWith('/') ? entrypoint : `/${entrypoint.replace(/^\.\//, '')}`,
    args: args ?? [],
    environment: environment ?? [],
    environmentFile: environmentFile ?? undefined,
    mounts: (mounts ?? []).map(mountOf),
    writeableRootfs: security?.writeableRootfs === 'true',
    writeableSysfs: security?.writeableSysfs === 'true',
    maskedPaths: security?.maskedPaths ?? undefined,
    readonlyPaths: security?.readonlyPaths ?? undefined,
    rootPropagation: security?.rootfsPropagation ?? undefined,
    depends: dependenciesOf(depends ?? []),
    restart,
    logToConsole: logToConsole === 'true',
  }
}

function mountOf({ source, destination, type, options, uidmappings, gidmappings }: v.InferOutput<typeof Mount>): SpecMount {
  const mapped = (list: typeof uidmappings) =>
    list?.map(({ containerid, hostid, size }) => ({ containerID: Number(containerid), hostID: Number(hostid), size: Number(size) }))
  const [uids, gids] = [mapped(uidmappings), mapped(gidmappings)]
  return {
    destination,
    ...(source !== undefined && { source }),
    ...(type !== undefined && { type }),
    options: options ?? [],
    ...(uids && { uidMappings: uids }),
    ...(gids && { gidMappings: gids }),
  }
}

function dependenciesOf(list: readonly v.InferOutput<typeof Dependency>[]): ExtensionDependencies {
  return {
    services: list.flatMap(({ service }) => service ?? []),
    paths: list.flatMap(({ path }) => path ?? []),
    network: list.flatMap(({ network }) => network ?? []).map((need) => needs[need]),
    time: list.some(({ time }) => time === 'true'),
    configuration: list.some(({ configuration }) => configuration === 'true'),
  }
}

/** Parses the lines of an environment file: `NAME=value`, with or without `export` and quotes; others are left out. */
export function parseEnvironmentFile(lines: string): string[] {
  return lines.split('\n').flatMap((line) => {
    const text = line.trim().replace(/^export\s/, '')
    const at = text.indexOf('=')
    const name = text.slice(0, Math.max(at, 0)).trim()
    return /^[A-Za-z_][\w.]*$/.test(name) ? [`${name}=${unquoted(text.slice(at + 1).trim())}`] : []
  })
}

/** A value without its quotes, or without the comment behind it. */
function unquoted(value: string): string {
  const quote = value.charAt(0)
  if ((quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)) return value.slice(1, -1)
  const comment = value.indexOf(' #')
  return comment < 0 ? value : value.slice(0, comment).trimEnd()
}
