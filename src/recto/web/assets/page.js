// What belongs to the whole page: its address, keys, panels on narrow screens.
window.rectoPage = {
  setAddress(address) {
    if (location.pathname !== address) history.pushState(null, "", address);
  },
};
