import type { SpecOf } from '../../../cosi/resource.ts'
import type { Link } from '../../../linux/net/rtnetlink.ts'
import type { Kernel } from '../../kernel.ts'
import type { LinkStatus } from '../resources/link.ts'

type Status = SpecOf<typeof LinkStatus>
type Hardware = Pick<Status, 'port' | 'duplex' | 'speedMbit' | 'driver' | 'busPath' | 'pciID' | 'vendorID' | 'productID'>
type Files = Pick<Kernel['files'], 'readText' | 'readlink' | 'exists'>

const nothing: Hardware = { port: 'Other', duplex: 'Unknown' }
const unknownSpeed = 0xffffffff

/** Reads the hardware properties of a link from sysfs: speed, duplex, driver, bus address. Virtual links have none. */
export function hardwareOf(files: Files, { name, kind, type }: Pick<Link, 'name' | 'kind' | 'type'>): Hardware {
  if (type !== 1 || (kind !== '' && kind !== 'bond')) return nothing // ARPHRD_ETHER
  const folder = `/sys/class/net/${name}`
  // Reading the speed of a link that is down fails with EINVAL.
  const read = (file: string) => {
    try {
      return files.readText(`${folder}/${file}`).trim()
    } catch {
      return ''
    }
  }
  const last = (link: string) => {
    try {
      return files.readlink(`${folder}/${link}`).split('/').at(-1) ?? ''
    } catch {
      return ''
    }
  }
  const speed = Number(read('speed') || -1)
  const duplex = read('duplex')
  const busPath = last('device')
  const [vendorID, productID] = [read('device/vendor'), read('device/device')]
  const pci = /^0x[0-9a-f]{4}$/.test(vendorID) && /^0x[0-9a-f]{4}$/.test(productID)
  return {
    ...(speed > 0 && speed !== unknownSpeed && { speedMbit: speed }),
    port: 'Other',
    duplex: duplex === 'full' ? 'Full' : duplex === 'half' ? 'Half' : 'Unknown',
    ...(busPath && { busPath, driver: last('device/driver') }),
    ...(pci && { pciID: `${vendorID.slice(2)}:${productID.slice(2)}`.toUpperCase(), vendorID, productID }),
  }
}
