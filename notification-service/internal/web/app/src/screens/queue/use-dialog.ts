import { useRef, useState } from 'preact/hooks';

/**
 * The dialog that is open, if one is.
 *
 * @param focusPlace puts the focus back if the element that had it is gone.
 */
export function useDialog<Dialog>(focusPlace: () => void) {
  const [dialog, setDialog] = useState<Dialog>();
  /** Whether it was opened from an element that had the focus. */
  const fromFocus = useRef(false);
  const openDialog = (opened: Dialog) => {
    fromFocus.current = document.activeElement !== document.body;
    setDialog(opened);
  };
  const endDialog = () => {
    setDialog(undefined);
    setTimeout(() => {
      if (document.activeElement === document.body && fromFocus.current) focusPlace();
    });
  };
  return { dialog, openDialog, endDialog };
}
