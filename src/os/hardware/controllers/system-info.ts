import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { MetaKey } from '../../runtime/resources/meta.ts'
import { readFirmwareTables } from '../firmware.ts'
import { MemoryModule } from '../resources/memory-module.ts'
import { Processor } from '../resources/processor.ts'
import { SystemInformation } from '../resources/system-information.ts'

const tables = '/sys/firmware/dmi/tables/DMI'

/** META tag 15: a UUID for machines whose firmware assigns the same one to all. */
const uuidOverride = '0x0f'

/** Publishes the SMBIOS data. Without SMBIOS only the UUID from META is known. */
export const observeSystemInfo = ({ files }: { files: Pick<Kernel['files'], 'exists' | 'read'> }): Controller =>
  defineController({
    name: 'hardware.SystemInfoController',
    effects: 'none',
    inputs: { meta: weak(MetaKey, { id: uuidOverride }) },
    outputs: { system: exclusive(SystemInformation), processors: exclusive(Processor), memory: exclusive(MemoryModule) },
    reconcile({ meta, system, processors, memory }) {
      const found = files.exists(tables) ? readFirmwareTables(files.read(tables)) : undefined
      const uuid = meta.get(uuidOverride)?.spec.value ?? found?.system?.uuid
      if (found?.system || uuid) system.put('systeminformation', { ...found?.system, ...(uuid && { uuid }) })
      for (const [id, spec] of found?.processors ?? []) processors.put(id, spec)
      for (const [id, spec] of found?.memory ?? []) memory.put(id, spec)
    },
  })
