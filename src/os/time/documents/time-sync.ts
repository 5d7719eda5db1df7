import { duration, flag, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'

/** Sources of time. */
export const TimeSyncConfig = defineDocument({
  kind: 'TimeSyncConfig',
  description: 'Servers and devices that the clock is synchronized with.',
  schema: section({
    enabled: flag,
    bootTimeout: duration,
    ntp: section({ servers: listOf(text) }),
    ptp: section({ devices: listOf(text) }),
  }),
  rules({ bootTimeout, ntp, ptp }, report) {
    if (milliseconds(bootTimeout) < 0) report.error(['bootTimeout'], 'cannot be negative')
    if (ntp && ptp) report.error(['ptp'], 'ntp and ptp exclude each other')
  },
})

/** `machine.time`: the same settings in the v1alpha1 document. */
export const machineTime = section({ disabled: flag, servers: listOf(text), bootTimeout: duration })
