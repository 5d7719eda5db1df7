import { described, duration, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'

/** The hardware watchdog, which resets a machine that hangs. */
export const WatchdogTimerConfig = defineDocument({
  kind: 'WatchdogTimerConfig',
  description: 'The hardware watchdog, which resets a machine that hangs.',
  schema: section({
    device: described(text, 'The device.'),
    timeout: described(duration, 'After how long without being fed the hardware resets the machine.'),
  }),
  rules({ device, timeout }, report) {
    if (!device) report.error(['device'], 'a device is required, like "/dev/watchdog0"')
    const span = milliseconds(timeout)
    if (span !== 0 && span < 10_000) report.error(['timeout'], `${timeout} is less than 10s`)
  },
})
