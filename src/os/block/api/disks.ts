import { storage as enums } from '../../../rpc/enums.ts'
import { inMaintenanceOr, type Method, readers, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { Disk } from '../resources/disk.ts'
import { SystemDisk } from '../resources/system-disk.ts'

const { DiskType } = enums.Disk

/** Lists the machine's disks. A container node has none. */
export const disks: Method = unary('storage.StorageService/Disks', readers, (_, { store }) => {
  const system = store.get(SystemDisk, 'system-disk')?.spec.diskID
  return {
    messages: [
      {
        disks: store.list(Disk).map(({ metadata: { id }, spec }) => ({
          size: spec.size,
          model: spec.model ?? '',
          deviceName: spec.dev_path,
          serial: spec.serial ?? '',
          modalias: spec.modalias ?? '',
          uuid: spec.uuid ?? '',
          wwid: spec.wwid ?? '',
          type: typeOf(spec),
          busPath: spec.bus_path ?? '',
          systemDisk: id === system,
          subsystem: spec.sub_system ?? '',
          readonly: spec.readonly,
        })),
      },
    ],
  }
})

function typeOf({
  cdrom,
  transport,
  rotational,
}: {
  cdrom: boolean
  transport?: string | undefined
  rotational?: boolean | undefined
}): number {
  if (cdrom) return DiskType.CD
  if (transport === 'nvme') return DiskType.NVME
  if (transport === 'mmc') return DiskType.SD
  return rotational ? DiskType.HDD : DiskType.SSD
}

/** Wiping is refused in a container, where the visible disks are the host's. */
export const wipeRefused: Method = unary('storage.StorageService/BlockDeviceWipe', inMaintenanceOr(['os:admin']), ({ devices }) => {
  const names = devices.map(({ device }) => `"${device}"`).join(', ')
  throw new RpcError(
    'FailedPrecondition',
    `wipe ${names || 'disk'}: method is not supported in container mode: the disks visible here belong to the host`,
  )
})
