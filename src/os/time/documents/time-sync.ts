import { described, duration, flag, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'

/** Sources of time. */
export const TimeSyncConfig = defineDocument({
  kind: 'TimeSyncConfig',
  description: 'Servers and devices that the clock is synchronized with.',
  schema: section({
    enabled: described(flag, 'Switches this on.'),
    bootTimeout: described(duration, 'How long the start waits for the time; 0 for as long as it takes.'),
    ntp: described(section({ servers: described(listOf(text), 'Their names or addresses.') }), 'Time from servers on the network.'),
    ptp: described(section({ devices: described(listOf(text), 'Their devices.') }), 'Time from clocks of the hardware.'),
  }),
  rules({ bootTimeout, ntp, ptp }, report) {
    if (milliseconds(bootTimeout) < 0) report.error(['bootTimeout'], 'cannot be negative')
    if (ntp && ptp) report.error(['ptp'], 'ntp and ptp exclude each other')
  },
})

/** `machine.time`: the same settings in the v1alpha1 document. */
export const machineTime = section({
  disabled: described(flag, 'Switches this off.'),
  servers: described(listOf(text), 'Servers of time.'),
  bootTimeout: described(duration, 'How long the start waits for the time; 0 for as long as it takes.'),
})
