import type { SpecOf } from '../../../src/cosi/resource.ts'
import type { LinkStatus } from '../../../src/os/network/resources/link.ts'

/** The status of an Ethernet link that is up. */
export const linkStatus = (index: number, more: Partial<SpecOf<typeof LinkStatus>> = {}): SpecOf<typeof LinkStatus> => ({
  index,
  type: 'ether',
  linkIndex: 0,
  flags: 'UP',
  hardwareAddr: `02:00:00:00:00:0${index}`,
  permanentAddr: `02:00:00:00:00:0${index}`,
  broadcastAddr: '',
  mtu: 1500,
  queueDisc: '',
  operationalState: 'up',
  kind: '',
  slaveKind: '',
  linkState: true,
  port: '',
  duplex: '',
  ...more,
})
