/** `--mount` in the spelling of Docker: `type=bind,source=/data,target=/mnt,readonly`. */

import type { MountRecord } from '../../../node-supervisor/engine-record.ts'
import { UsageError } from '../../failure.ts'
import { parseMemory } from '../plan/quantity.ts'

const spellings: Readonly<Record<string, string>> = {
  src: 'source',
  destination: 'target',
  dst: 'target',
  ro: 'readonly',
}
const keys = ['type', 'source', 'target', 'readonly', 'bind-propagation', 'tmpfs-size', 'tmpfs-mode']
const propagations = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave']
const example = 'type=bind,source=/data,target=/mnt,readonly'

/** Reads the value of one `--mount`. */
export function parseMount(text: string): MountRecord {
  const refuse = (reason: string): never => {
    throw new UsageError(`--mount "${text}": ${reason}: write it as in ${example}`)
  }
  const given = new Map<string, string>()
  for (const part of text.split(',')) {
    const [name = '', ...value] = part.trim().split('=')
    const key = spellings[name] ?? name
    if (!keys.includes(key)) refuse(`there is no key "${name}" here`)
    if (given.has(key)) refuse(`"${key}" is given twice`)
    given.set(key, value.join('='))
  }
  const target = given.get('target') ?? ''
  const source = given.get('source')
  if (!target.startsWith('/')) refuse('the target is a path in the node, from its root')
  const type = given.get('type') ?? 'volume'
  const readOnly = readonlyOf(given.get('readonly') ?? 'false', refuse)
  const common = { Target: target, ...(readOnly && { ReadOnly: true }) }
  const only = (owner: string, key: string) => {
    if (type !== owner && given.has(key)) refuse(`"${key}" is for type=${owner}`)
  }
  only('bind', 'bind-propagation')
  only('tmpfs', 'tmpfs-size')
  only('tmpfs', 'tmpfs-mode')
  switch (type) {
    case 'bind': {
      const propagation = given.get('bind-propagation')
      if (!source?.startsWith('/')) return refuse('the source is a path of the host, from its root')
      if (propagation !== undefined && !propagations.includes(propagation)) refuse(`bind-propagation is one of ${propagations.join(', ')}`)
      return { Type: 'bind', Source: source, ...common, ...(propagation && { BindOptions: { Propagation: propagation } }) }
    }
    case 'volume':
      if (source !== undefined && !/^[a-zA-Z0-9][\w.-]{0,254}$/.test(source)) refuse('the source is the name of a volume')
      return { Type: 'volume', ...(source && { Source: source }), ...common }
    case 'tmpfs': {
      if (source !== undefined) refuse('a tmpfs has no source')
      const options = tmpfsOptions(given, refuse)
      return { Type: 'tmpfs', ...common, ...(options && { TmpfsOptions: options }) }
    }
    default:
      return refuse('the type is one of bind, volume, tmpfs')
  }
}

function tmpfsOptions(given: ReadonlyMap<string, string>, refuse: (reason: string) => never) {
  const size = given.get('tmpfs-size')
  const mode = given.get('tmpfs-mode')
  if (mode !== undefined && !/^[0-7]{3,4}$/.test(mode)) refuse('tmpfs-mode is octal, such as 1777')
  if (size === undefined && mode === undefined) return undefined
  return {
    ...(size !== undefined && { SizeBytes: sizeOf(size) }),
    ...(mode !== undefined && { Mode: Number.parseInt(mode, 8) }),
  }
}

/** Bytes; a letter alone counts in powers of 1024, as Docker's sizes do. */
const sizeOf = (text: string): number =>
  /^\d+$/.test(text)
    ? Number(text)
    : parseMemory(
        text.replace(/^(\d+)([kmg])b?$/i, (_, count, unit) => `${count}${unit.toUpperCase()}iB`),
        '--mount tmpfs-size',
      )

function readonlyOf(text: string, refuse: (reason: string) => never): boolean {
  if (['', '1', 'true'].includes(text)) return true
  return ['0', 'false'].includes(text) ? false : refuse('"readonly" is true or false')
}
