import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { EtcFileSpec } from '../../files/resources/etc-file.ts'
import { initiatorName, machineId, nvmeHostId, nvmeHostName } from '../machine-id.ts'
import { Identity } from '../resources/identity.ts'

const privateFile = (contents: string) => ({ contents, mode: 0o600, selinux_label: '' })

/** The name by which iSCSI targets know this machine. */
export const configInitiatorName: Controller = defineController({
  name: 'files.IQNController',
  effects: 'none',
  inputs: { identity: weak(Identity, { id: 'local' }) },
  outputs: { etc: shared(EtcFileSpec) },
  reconcile({ identity, etc }) {
    const nodeId = identity.get('local')?.spec.nodeId
    if (nodeId === undefined) return
    etc.put('iscsi/initiatorname.iscsi', privateFile(`InitiatorName=${initiatorName(machineId(nodeId))}\n`))
  },
})

/** The names by which NVMe targets know this machine. */
export const configNvmeHost: Controller = defineController({
  name: 'files.NQNController',
  effects: 'none',
  inputs: { identity: weak(Identity, { id: 'local' }) },
  outputs: { etc: shared(EtcFileSpec) },
  reconcile({ identity, etc }) {
    const nodeId = identity.get('local')?.spec.nodeId
    if (nodeId === undefined) return
    const id = machineId(nodeId)
    etc.put('nvme/hostid', privateFile(nvmeHostId(id)))
    etc.put('nvme/hostnqn', privateFile(nvmeHostName(id)))
  },
})
