/** The machine's power button. */
import { acpiFamily, readAcpiEvent } from '../../wire/netlink/acpi.ts'
import { genericControl, readFamilyGroups, readFamilyId, writeFamilyQuery } from '../../wire/netlink/generic.ts'
import { NetlinkSocket, netlinkProtocol, watchNetlink } from '../net/netlink-socket.ts'
import { SystemError } from '../system-error.ts'

/** Yields at each press of the button, until the signal is aborted. Throws SystemError where the machine has no ACPI. */
export async function* watchPowerButton(signal?: AbortSignal): AsyncGenerator<void> {
  const { family, group } = numbers()
  for await (const event of watchNetlink(netlinkProtocol.generic, [group], { signal })) {
    if (event.lost) continue
    for (const { type, body } of event.messages) if (type === family && readAcpiEvent(body).deviceClass.startsWith('button/power')) yield
  }
}

function numbers(): { family: number; group: number } {
  using socket = new NetlinkSocket(netlinkProtocol.generic)
  const [answer] = socket.request('find family', `"${acpiFamily.name}"`, genericControl.family, writeFamilyQuery(acpiFamily.name))
  const group = answer && readFamilyGroups(answer.body).get(acpiFamily.group)
  if (!answer || group === undefined) throw new SystemError('find family', 'EOPNOTSUPP', `"${acpiFamily.name}"`, 'this machine has no ACPI')
  return { family: readFamilyId(answer.body), group }
}
