/** What GRUB is told: one configuration that never changes, and one file a slot that says what the slot starts. */
import { type Slot, type SlotContent, trialStarts } from './slot.ts'

/** Where GRUB's core looks, on the partition labelled BOOT. */
export const grubFolder = '/grub'

/**
 * The configuration. `good` is the slot last marked good; `next`, when set, is on trial with `tries` starts left, counted
 * down and written back before the slot is started. GRUB has no arithmetic, hence a case for each count.
 */
export function grubConfig(): string {
  const counts = Array.from({ length: trialStarts }, (_, index) => trialStarts - index)
  return `# Which slot starts is in grubenv; what a slot starts is in its slot.cfg.
insmod part_gpt
insmod fat
load_env --file ($root)${grubFolder}/grubenv good next tries
set slot="$good"
${counts.map((count, index) => `${index === 0 ? 'if' : 'elif'} [ -n "$next" -a "$tries" = "${count}" ]; then\n  set tries="${count - 1}"\n  set slot="$next"\n  save_env --file ($root)${grubFolder}/grubenv tries`).join('\n')}
fi
if [ ! -f ($root)/$slot/slot.cfg ]; then
  if [ "$slot" = "a" ]; then set slot="b"; else set slot="a"; fi
fi
if [ "$slot" = "a" ]; then set other="b"; else set other="a"; fi
set default="$slot"
set fallback="$other"
set timeout_style=hidden
set timeout=1
menuentry "Ichor, slot A" --id a {
  source ($root)/a/slot.cfg
}
menuentry "Ichor, slot B" --id b {
  source ($root)/b/slot.cfg
}
menuentry "Wipe STATE and EPHEMERAL, start in maintenance" --id reset {
  set more="talos.experimental.wipe=system:STATE,EPHEMERAL"
  source ($root)/$slot/slot.cfg
}
`
}

/** What a slot starts. */
export function slotConfig(slot: Slot, { version, rootHash, image }: SlotContent, commandLine: string): string {
  return [
    `# release ${version}`,
    `# root ${rootHash}`,
    `# image ${image}`,
    `linux ($root)/${slot}/vmlinuz ${commandLine.split(/\s+/).filter(Boolean).map(quoted).join(' ')} $more`,
    `initrd ($root)/${slot}/initramfs.xz`,
    '',
  ].join('\n')
}

/** What a slot's file says lies there; nothing when it is not whole. */
export function parseSlotConfig(text: string): SlotContent | undefined {
  const version = /^# release (.+)$/m.exec(text)?.[1]
  const rootHash = /^# root ([0-9a-f]{64})$/m.exec(text)?.[1]
  const image = /^# image ([0-9a-f]{16})$/m.exec(text)?.[1]
  return version && rootHash && image && /^initrd .+\n$/m.test(text) ? { version, rootHash, image } : undefined
}

/** A word as GRUB reads it. */
function quoted(word: string): string {
  return /^[\w.,:=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
