import { failedWith } from '../../../wire/errno.ts'
import { cryptTable } from '../../../wire/luks2/crypt-table.ts'
import type { Header } from '../../../wire/luks2/header.ts'
import type { Kernel } from '../../kernel.ts'

type MappingKernel = Pick<Kernel, 'mapper' | 'files'>

/** An encrypted device and its key. */
export interface Encrypted {
  readonly path: string
  readonly size: number
  readonly header: Header
  readonly volumeKey: Uint8Array
  readonly options: readonly string[]
}

/** Folder of links to mappings. */
const folder = '/dev/mapper'

/** Name of the mapping of a volume. */
const mappingName = (id: string): string => `luks2-${id}`

/** Opens the mapping of a volume and returns its device. A mapping of the same header that exists already is used. */
export function openMapping({ mapper, files }: MappingKernel, id: string, { path, size, header, volumeKey, options }: Encrypted): string {
  const name = mappingName(id)
  const uuid = `CRYPT-LUKS2-${header.uuid.replaceAll('-', '')}-${name}`
  const keyName = `cryptsetup:${header.uuid}-d0`
  const table = cryptTable(header, { number: mapper.deviceNumber(path), size }, `:${volumeKey.length}:logon:${keyName}`, options)
  const device = () => {
    try {
      return mapper.createMapping({ name, uuid, keyName, key: volumeKey, ...table }).device
    } catch (error) {
      const there = failedWith(error, 'EBUSY') ? mapper.findMapping(name) : undefined
      if (there?.uuid !== uuid) throw error
      return there.device
    }
  }
  const opened = device()
  try {
    files.mkdirAll(folder)
    files.symlink(opened, `${folder}/${name}`)
  } catch (error) {
    mapper.removeMapping(name)
    throw error
  }
  return opened
}

/** Closes the mapping of a volume. Returns false while it is in use. */
export function closeMapping({ mapper, files }: MappingKernel, id: string): boolean {
  const name = mappingName(id)
  try {
    mapper.removeMapping(name)
  } catch (error) {
    if (failedWith(error, 'EBUSY')) return false
    throw error
  }
  const link = `${folder}/${name}`
  if (files.lstatIfThere(link)) files.removeFile(link)
  return true
}
